// Eight octets of a row of keys or of values, from the first on
alias Octets = array<Octet, 8>;

fn key_octets(row: u32, first: u32, lane: u32) -> Octets {
    var octets = Octets();
    var scale = Scale();
    for (var i = 0u; i < 8u; i++) {
        if i % BLOCK == 0u {
            scale = key_scale(row, (first + i) / BLOCK);
        }
        octets[i] = key_octet(row, first + i, scale);
    }
    return octets;
}

fn value_octets(row: u32, first: u32, lane: u32) -> Octets {
    var octets = Octets();
    var scale = Scale();
    for (var i = 0u; i < 8u; i++) {
        if i % BLOCK == 0u {
            scale = value_scale(row, (first + i) / BLOCK);
        }
        octets[i] = value_octet(row, first + i, scale);
    }
    return octets;
}
