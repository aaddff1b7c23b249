//! Which cases a run measures.

use samara_ops::bench::{OLMO2_1B_HEADS, Subject};
use samara_ops::device::OpenDevice;
use samara_ops::{Activation, Format, KvFormats, NormKind, QkNorm};

use super::OpsBenchArgs;

/// Width of the residual stream, feed-forward width and vocabulary of an OLMo 2 1B.
const D_MODEL: usize = 2048;
const D_FF: usize = 8192;
const VOCAB_SIZE: usize = 100_352;

/// The ceilings, then products, then the rest.
pub(super) fn all(args: &OpsBenchArgs, open: &OpenDevice) -> Vec<Subject> {
    let mut all = ceilings(open).to_vec();
    let tokens = || args.tokens.iter().map(|&n_tokens| n_tokens as usize);
    for &(n_out, n_in) in &args.sizes {
        for n_tokens in tokens() {
            all.push(Subject::StockMatmul { n_tokens, n_out, n_in });
            let formats = args.formats.iter().filter(|format| fits(**format, n_in));
            all.extend(formats.flat_map(|&format| {
                open.families().into_iter().map(move |family| Subject::Linear { format, family, n_tokens, n_out, n_in })
            }));
        }
        let activation = Activation::Silu;
        let formats = args.formats.iter().filter(|format| args.tokens.contains(&1) && fits(**format, n_in));
        all.extend(formats.flat_map(|&format| {
            let gated = move |family| Subject::GatedLinear { format, family, activation, n_out, n_in };
            open.families().into_iter().map(gated)
        }));
    }
    all.extend(tokens().flat_map(between_products));
    for &n_keys in &args.keys {
        let n_keys = n_keys as usize;
        let fitting = tokens().filter(|n_tokens| *n_tokens <= n_keys);
        all.extend(fitting.flat_map(|n_tokens| attention(&args.kv, open, n_tokens, n_keys)));
    }
    all.push(Subject::Greedy { vocab_size: VOCAB_SIZE });
    all.push(Subject::Sample { vocab_size: VOCAB_SIZE });
    all
}

/// How much memory the copies of a weight fill, so that a matvec finds none in a cache: more than caches hold. Products
/// of many tokens are bound by arithmetic and need no copies.
pub(super) fn cold_bytes(subject: &Subject, open: &OpenDevice) -> u64 {
    let n_tokens = match *subject {
        Subject::Linear { n_tokens, .. } | Subject::StockMatmul { n_tokens, .. } => n_tokens,
        Subject::GatedLinear { .. } => 1,
        _ => return 0,
    };
    // Software gets less work here and below, so that a round does not take minutes.
    match (n_tokens, open.is_software()) {
        (5.., _) => 0,
        (_, true) => 32 << 20,
        (_, false) => 96 << 20,
    }
}

fn ceilings(open: &OpenDevice) -> [Subject; 2] {
    let (n_bytes, n_rounds) = if open.is_software() { (64 << 20, 8) } else { (256 << 20, 512) };
    let n_values = (open.max_binding_bytes.min(n_bytes) / 4) as usize;
    [Subject::CeilingCopy { n_values }, Subject::CeilingMultiplyAdd { n_values: 1 << 20, n_rounds }]
}

fn between_products(n_tokens: usize) -> [Subject; 5] {
    let (kind, width) = (NormKind::Rms, D_MODEL);
    [
        Subject::Norm { kind, n_tokens, width },
        Subject::NormAdd { kind, n_tokens, width },
        Subject::AddNorm { kind, n_tokens, width },
        Subject::Glu { activation: Activation::Silu, n_tokens, d_ff: D_FF },
        Subject::QkNormRope { norm: QkNorm::Full, heads: OLMO2_1B_HEADS, n_tokens },
    ]
}

fn attention(
    formats: &[KvFormats],
    open: &OpenDevice,
    n_tokens: usize,
    n_keys: usize,
) -> impl Iterator<Item = Subject> {
    let heads = OLMO2_1B_HEADS;
    let of = move |family| formats.iter().map(move |&kv| Subject::Attention { family, kv, heads, n_tokens, n_keys });
    open.families().into_iter().flat_map(of)
}

/// Whether rows of that width are whole blocks.
fn fits(format: Format, n_in: usize) -> bool {
    n_in.is_multiple_of(format.layout().scales.block_len())
}
