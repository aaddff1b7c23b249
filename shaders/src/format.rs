// How the numbers of a weight lie in device memory. Included by the build script, which writes each format's constants
// before the kernels that read weights, and by the library, so that the launcher lays bytes out as the kernels expect.

/// A layout of one weight's rows. Quantised ones are those of the files, taken apart without loss: codes in one buffer,
/// third bits and scales in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `f32` rows of any width, the only one whose width need not be a multiple of 32.
    Ragged,
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Iq4Nl,
    Iq4Xs,
    Mxfp4,
}

/// The parts of a layout. Values are stored by blocks of 32, lowest bits first, in the order of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bits of a code in the first buffer.
    pub main_bits: u32,
    /// Higher bits of a code, at the start of a row of the second buffer.
    pub extra_bits: u32,
    /// Taken off every code.
    pub offset: u32,
    /// What a code stands for.
    pub book: Book,
    /// How scales lie, after the extra bits of the row.
    pub scales: Scales,
}

/// What a code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Book {
    /// Itself.
    Unsigned,
    /// Itself, in two's complement.
    Signed,
    /// A step of IQ4_NL.
    NonLinear,
    /// Twice a float with one sign, two exponent and one mantissa bit (OCP MX).
    E2m1,
    /// There are no codes: the buffer holds floats of `main_bits`, those of 16 with an exponent as wide as `f32`'s where
    /// `offset` is 1.
    Float,
}

/// The scale record of a block; numbers are little-endian, and a row's records are padded to whole words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scales {
    /// None.
    None,
    /// For 32 values: `f16` d. A value is `d c`.
    Half,
    /// For 32 values: an exponent e, in two bytes. A value is `2^(e - 128) c`.
    Power,
    /// For 32 values: `f16` d, m. A value is `d c + m`.
    Pair,
    /// For 256 values: `f16` d, dmin, 8 bytes s, 8 bytes m. A value is `d s c - dmin m`, a pair for 32 values.
    Bytes32,
    /// For 256 values: `f16` d, 0, 8 signed bytes s. A value is `d s c`, one s for 32 values.
    Signed32,
    /// For 256 values: `f16` d, 0, 16 signed bytes s. A value is `d s c`, one s for 16 values.
    Signed16,
    /// For 256 values: `f16` d, dmin, 16 bytes with s in the low and m in the high nibble. A value is `d s c - dmin m`.
    Nibbles16,
}

impl Format {
    /// Every format, in the order of the variants of each kernel that reads weights.
    pub const ALL: [Self; 17] = [
        Self::Ragged,
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::Iq4Nl,
        Self::Iq4Xs,
        Self::Mxfp4,
    ];

    /// Names the kernel variant.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ragged => "ragged",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q4_0 => "q4_0",
            Self::Q4_1 => "q4_1",
            Self::Q5_0 => "q5_0",
            Self::Q5_1 => "q5_1",
            Self::Q8_0 => "q8_0",
            Self::Q2K => "q2_k",
            Self::Q3K => "q3_k",
            Self::Q4K => "q4_k",
            Self::Q5K => "q5_k",
            Self::Q6K => "q6_k",
            Self::Iq4Nl => "iq4_nl",
            Self::Iq4Xs => "iq4_xs",
            Self::Mxfp4 => "mxfp4",
        }
    }

    /// Its parts.
    pub const fn layout(self) -> Layout {
        const fn codes(main_bits: u32, extra_bits: u32, offset: u32, book: Book, scales: Scales) -> Layout {
            Layout { main_bits, extra_bits, offset, book, scales }
        }
        match self {
            Self::Ragged | Self::F32 => codes(32, 0, 0, Book::Float, Scales::None),
            Self::F16 => codes(16, 0, 0, Book::Float, Scales::None),
            Self::Bf16 => codes(16, 0, 1, Book::Float, Scales::None),
            Self::Q4_0 => codes(4, 0, 8, Book::Unsigned, Scales::Half),
            Self::Q4_1 => codes(4, 0, 0, Book::Unsigned, Scales::Pair),
            Self::Q5_0 => codes(4, 1, 16, Book::Unsigned, Scales::Half),
            Self::Q5_1 => codes(4, 1, 0, Book::Unsigned, Scales::Pair),
            Self::Q8_0 => codes(8, 0, 0, Book::Signed, Scales::Half),
            Self::Q2K => codes(2, 0, 0, Book::Unsigned, Scales::Nibbles16),
            Self::Q3K => codes(2, 1, 4, Book::Unsigned, Scales::Signed16),
            Self::Q4K => codes(4, 0, 0, Book::Unsigned, Scales::Bytes32),
            Self::Q5K => codes(4, 1, 0, Book::Unsigned, Scales::Bytes32),
            Self::Q6K => codes(4, 2, 32, Book::Unsigned, Scales::Signed16),
            Self::Iq4Nl => codes(4, 0, 0, Book::NonLinear, Scales::Half),
            Self::Iq4Xs => codes(4, 0, 0, Book::NonLinear, Scales::Signed32),
            Self::Mxfp4 => codes(4, 0, 0, Book::E2m1, Scales::Power),
        }
    }
}

impl Scales {
    /// Values that one record covers.
    pub const fn block_len(self) -> usize {
        match self {
            Self::None | Self::Half | Self::Power | Self::Pair => 32,
            Self::Bytes32 | Self::Signed32 | Self::Signed16 | Self::Nibbles16 => 256,
        }
    }

    /// Bytes of one record.
    pub const fn record_bytes(self) -> usize {
        match self {
            Self::None => 0,
            Self::Half | Self::Power => 2,
            Self::Pair => 4,
            Self::Signed32 => 12,
            Self::Bytes32 | Self::Signed16 | Self::Nibbles16 => 20,
        }
    }
}
