//! The draw in plain Rust and f64: what the kernel is held to, and what runs without a GPU.

use super::Draw;
use std::cmp::Ordering;

/// One token that may still be drawn.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: u32,
    logit: f32,
    /// Unnormalised probability; 1 for the best.
    weight: f64,
}

/// The token drawn from a row; `None` where every logit is -inf.
pub(super) fn draw(logits: &[f32], draw: &Draw) -> Option<u32> {
    let mut candidates = candidates(logits);
    top_k(&mut candidates, draw.top_k);
    set_weights(&mut candidates, draw.temperature);
    top_p(&mut candidates, f64::from(draw.top_p));
    candidates.retain(|c| c.weight >= f64::from(draw.min_p));
    choose(&candidates, draw.uniform)
}

/// In ascending order of ids, as the filters leave them.
fn candidates(logits: &[f32]) -> Vec<Candidate> {
    let all = (0..).zip(logits).map(|(id, &logit)| Candidate { id, logit, weight: 0.0 });
    all.filter(|c| c.logit > f32::NEG_INFINITY).collect()
}

/// Higher logits first.
fn by_rank(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit)
}

/// Drops what is below `border`.
fn keep_from(candidates: &mut Vec<Candidate>, border: f32) {
    candidates.retain(|c| c.logit.total_cmp(&border).is_ge());
}

fn top_k(candidates: &mut Vec<Candidate>, k: usize) {
    if k == 0 || k >= candidates.len() {
        return;
    }
    let mut ranked = candidates.clone();
    let (_, kth, _) = ranked.select_nth_unstable_by(k - 1, by_rank);
    keep_from(candidates, kth.logit);
}

fn set_weights(candidates: &mut [Candidate], temperature: f32) {
    let best = candidates.iter().map(|c| c.logit).fold(f32::NEG_INFINITY, f32::max);
    for c in candidates {
        c.weight = ((f64::from(c.logit) - f64::from(best)) / f64::from(temperature)).exp();
    }
}

fn top_p(candidates: &mut Vec<Candidate>, p: f64) {
    if p >= 1.0 {
        return;
    }
    let goal = p * candidates.iter().map(|c| c.weight).sum::<f64>();
    if let Some(border) = border_of(candidates.clone(), goal) {
        keep_from(candidates, border);
    }
}

/// The logit of the candidate whose weight, with those of all higher ones, reaches `goal`.
///
/// Few candidates usually suffice, so it ranks a short head first and a longer one only where that falls short.
fn border_of(mut candidates: Vec<Candidate>, goal: f64) -> Option<f32> {
    let mut n_head = 64;
    while n_head < candidates.len() {
        candidates.select_nth_unstable_by(n_head, by_rank);
        if let Some(border) = border_in(&mut candidates[..n_head], goal) {
            return Some(border);
        }
        n_head *= 8;
    }
    border_in(&mut candidates, goal)
}

/// The border, if it lies in `head`, which holds the highest.
fn border_in(head: &mut [Candidate], goal: f64) -> Option<f32> {
    head.sort_unstable_by(by_rank);
    let mut sum = 0.0;
    let crossing = head.iter().find(|c| {
        sum += c.weight;
        sum >= goal
    });
    crossing.map(|c| c.logit)
}

/// The candidate in whose share of the total weight `uniform` falls, shares laid out by id.
fn choose(candidates: &[Candidate], uniform: f64) -> Option<u32> {
    let mut left = uniform * candidates.iter().map(|c| c.weight).sum::<f64>();
    let chosen = candidates.iter().find(|c| {
        left -= c.weight;
        left < 0.0
    });
    // Rounding can leave a rest of the draw after the last share.
    chosen.or_else(|| candidates.iter().rev().find(|c| c.weight > 0.0)).map(|c| c.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_row_has_the_border_of_a_full_ranking() {
        // 3000 nearly equal shares: the short heads fall short and the list must grow.
        let logits: Vec<f32> = (0..3000).map(|id| ((id * 7919) % 3000) as f32 * 1e-4).collect();
        let mut all = candidates(&logits);
        set_weights(&mut all, 1.0);
        let goal = 0.7 * all.iter().map(|c| c.weight).sum::<f64>();
        let border = border_of(all.clone(), goal);
        assert_eq!(border, border_in(&mut all, goal));
        assert!(all.iter().filter(|c| Some(c.logit) >= border).count() > 512);
    }

    #[test]
    fn what_equals_the_border_stays() {
        let kept = |logits: &[f32], filter: &dyn Fn(&mut Vec<Candidate>)| {
            let mut all = candidates(logits);
            set_weights(&mut all, 1.0);
            filter(&mut all);
            all.iter().map(|c| c.id).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[1.0, 3.0, 2.0, 2.0], &|all| top_k(all, 2)), [1, 2, 3]);
        assert_eq!(kept(&[0.0, 0.0, -1.0, 0.0], &|all| top_p(all, 0.1)), [0, 1, 3]);
    }
}
