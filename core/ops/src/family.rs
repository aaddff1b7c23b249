//! Which of several kernels for one operation a device is given: [`Family`], and [`Kernels`], one for each task.

use std::fmt;
use std::str::FromStr;

/// What the invocations of a kernel have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A workgroup shares what it reads and waits at barriers: what hardware is fast at.
    Workgroup,
    /// Each works alone: for adapters that are software, where barriers are dear.
    Invocation,
    /// Those of a subgroup read for each other, without barriers: where there are subgroups of eight lanes or more.
    Subgroup,
}

/// What there are families of kernels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A product with one token.
    Matvec,
    /// A product with many.
    Matmul,
    /// Attention of one token.
    TokenAttention,
    /// Attention of many.
    PromptAttention,
}

/// The family for each task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernels([Family; 4]);

impl Family {
    /// All of them, the plain one first.
    pub const ALL: [Self; 3] = [Self::Workgroup, Self::Invocation, Self::Subgroup];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workgroup => "workgroup",
            Self::Invocation => "invocation",
            Self::Subgroup => "subgroup",
        }
    }
}

impl Task {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Matvec, Self::Matmul, Self::TokenAttention, Self::PromptAttention];

    /// As people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Matvec => "matvec",
            Self::Matmul => "matmul",
            Self::TokenAttention => "token attention",
            Self::PromptAttention => "prompt attention",
        }
    }
}

impl Kernels {
    /// One family for every task.
    pub const fn all(family: Family) -> Self {
        Self([family; 4])
    }

    /// The family for each task, in the order of [`Task::ALL`].
    pub const fn each(families: [Family; 4]) -> Self {
        Self(families)
    }

    /// The family for this task.
    pub const fn of(&self, task: Task) -> Family {
        self.0[task as usize]
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|family| family.name() == text);
        found.ok_or_else(|| format!("it is none of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, others @ ..] = self.0;
        if others.iter().all(|family| *family == first) {
            return write!(f, "{first}");
        }
        let each: Vec<_> = Task::ALL.iter().map(|task| format!("{task} {}", self.of(*task))).collect();
        f.write_str(&each.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_its_family() {
        let [a, b, c] = Family::ALL;
        let kernels = Kernels::each([a, b, c, b]);
        assert_eq!(Task::ALL.map(|task| kernels.of(task)), [a, b, c, b]);
        assert_eq!(
            kernels.to_string(),
            "matvec workgroup, matmul invocation, token attention subgroup, prompt attention invocation"
        );
        assert_eq!(Kernels::all(c).to_string(), "subgroup");
    }

    #[test]
    fn a_family_reads_back_as_it_was_written() {
        for family in Family::ALL {
            assert_eq!(family.name().parse(), Ok(family));
        }
        assert!("Workgroup".parse::<Family>().is_err() && "".parse::<Family>().is_err());
    }
}
