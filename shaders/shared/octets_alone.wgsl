// Eight octets of a key or of a value
alias Octets = array<Octet, 8>;

fn key_octets(first: u32, lane: u32) -> Octets {
    var octets = Octets();
    for (var i = 0u; i < 8u; i++) {
        octets[i] = key_octet(first + i);
    }
    return octets;
}

fn value_octets(first: u32, lane: u32) -> Octets {
    var octets = Octets();
    for (var i = 0u; i < 8u; i++) {
        octets[i] = value_octet(first + i);
    }
    return octets;
}
