//! Runs a template with its growing operators guarded.
//!
//! The engine has no hook for operators, but its compiled program can be read and written: each operator that makes a larger value
//! becomes a call of a filter of ours with the same operands. Every instruction stays at its place, so jumps stay right.

use std::collections::BTreeMap;

use minijinja::machinery::{self, Instruction, Instructions, Vm};
use minijinja::value::{Rest, ValueKind};
use minijinja::{Environment, Error, State, Value, context};

use super::limits::{Limits, check_bytes, weigh};
use super::slice::slice;
use crate::python;

const CONCAT: &str = "samara_concat";
const ADD: &str = "samara_add";
const MUL: &str = "samara_mul";
const LIST: &str = "samara_list";
const MAP: &str = "samara_map";
const SLICE: &str = "samara_slice";
/// "Not cached" in the engine's table of filters.
const NO_LOCAL: u8 = u8::MAX;

/// Renders the template.
pub(super) fn run(env: &Environment<'_>, source: &str, root: Value) -> Result<String, Error> {
    let template = env.template_from_str(source)?;
    let compiled = machinery::get_compiled_template(&template);
    let program = guarded(&compiled.instructions);
    let blocks: BTreeMap<&str, Instructions<'_>> =
        compiled.blocks.iter().map(|(name, block)| (*name, guarded(block))).collect();
    let mut text = String::new();
    let mut out = machinery::make_string_output(&mut text);
    Vm::new(env).eval(&program, root, &blocks, &mut out, compiled.initial_auto_escape)?;
    check_bytes(text.len())?;
    Ok(text)
}

/// The length of the longest text between tags.
pub(super) fn longest_text_bytes(env: &Environment<'_>, source: &str) -> Result<usize, Error> {
    let template = env.template_from_str(source)?;
    let compiled = machinery::get_compiled_template(&template);
    let programs = std::iter::once(&compiled.instructions).chain(compiled.blocks.values());
    let text_bytes = |instruction| match instruction {
        &Instruction::EmitRaw(text) => text.len(),
        _ => 0,
    };
    Ok(programs.flat_map(|program| instructions(program)).map(text_bytes).max().unwrap_or(0))
}

fn instructions<'a, 'source>(program: &'a Instructions<'source>) -> impl Iterator<Item = &'a Instruction<'source>> {
    (0..).map_while(|at| program.get(at))
}

fn guarded<'source>(program: &Instructions<'source>) -> Instructions<'source> {
    let mut out = Instructions::new(program.name(), program.source());
    for (at, instruction) in (0..).zip(instructions(program)) {
        let instruction = guarded_instruction(instruction);
        match program.get_span(at) {
            Some(span) => out.add_with_span(instruction, span),
            None => out.add(instruction),
        };
    }
    out
}

fn guarded_instruction<'source>(instruction: &Instruction<'source>) -> Instruction<'source> {
    let filter = |name, n_operands: Option<usize>| {
        let n_operands = n_operands.map(u16::try_from).transpose().ok()?;
        Some(Instruction::ApplyFilter(name, n_operands, NO_LOCAL))
    };
    let replaced = match instruction {
        Instruction::StringConcat => filter(CONCAT, Some(2)),
        Instruction::Add => filter(ADD, Some(2)),
        Instruction::Mul => filter(MUL, Some(2)),
        Instruction::BuildList(n) => filter(LIST, *n),
        Instruction::BuildMap(n) => filter(MAP, Some(2 * n)),
        Instruction::Slice => filter(SLICE, Some(4)),
        _ => None,
    };
    replaced.unwrap_or_else(|| instruction.clone())
}

/// The filters that guarded programs use in place of operators.
pub(super) fn add_operators(env: &mut Environment<'_>, limits: &Limits) {
    let budget = limits.clone();
    env.add_filter(CONCAT, move |left: &Value, right: &Value| concat(&budget, left, right));
    let budget = limits.clone();
    env.add_filter(ADD, move |state: &State, left: &Value, right: &Value| add(&budget, state, left, right));
    env.add_filter(MUL, mul);
    env.add_filter(LIST, |items: Rest<Value>| weigh(items.iter()).map(|_| Value::from(items.0)));
    env.add_filter(MAP, map);
    env.add_filter(super::prepare::SAME, |value: Value| value);
    env.add_filter(SLICE, slice);
}

fn concat(limits: &Limits, left: &Value, right: &Value) -> Result<Value, Error> {
    limits.text(|out| python::write_str(out, left).and_then(|()| python::write_str(out, right)))
}

fn add(limits: &Limits, state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    if left.as_str().is_some() && right.as_str().is_some() {
        return concat(limits, left, right);
    }
    weigh([left, right])?;
    operator(state, "left + right", left, right)
}

fn mul(state: &State, left: &Value, right: &Value) -> Result<Value, Error> {
    let repeats = |value: &Value| if value.kind() == ValueKind::Number { value.as_usize().unwrap_or(0) } else { 1 };
    if left.kind() != ValueKind::Number || right.kind() != ValueKind::Number {
        check_bytes(weigh([left, right])?.saturating_mul(repeats(left).max(repeats(right))))?;
    }
    operator(state, "left * right", left, right)
}

fn map(items: Rest<Value>) -> Result<Value, Error> {
    weigh(items.iter())?;
    Ok(items.chunks(2).filter_map(|pair| Some((pair.first()?.clone(), pair.get(1)?.clone()))).collect())
}

/// The engine's own operator.
fn operator(state: &State, expression: &'static str, left: &Value, right: &Value) -> Result<Value, Error> {
    state.env().compile_expression(expression)?.eval(context! { left, right })
}
