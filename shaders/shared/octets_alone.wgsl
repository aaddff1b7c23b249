// Eight octets of a row of keys or of values, from the `first` on
alias Octets = array<Octet, 8>;

fn key_octets(row: u32, first: u32, lane: u32) -> Octets {
    var octets = Octets();
    var held = Held();
    for (var i = 0u; i < 8u; i++) {
        held = held_key(row, first + i, held);
        octets[i] = octet_of(KEY_BITS, held, first + i);
    }
    return octets;
}

fn value_octets(row: u32, first: u32, lane: u32) -> Octets {
    var octets = Octets();
    var held = Held();
    for (var i = 0u; i < 8u; i++) {
        held = held_value(row, first + i, held);
        octets[i] = octet_of(VALUE_BITS, held, first + i);
    }
    return octets;
}
