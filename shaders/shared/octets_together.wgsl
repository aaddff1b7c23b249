// Eight octets of a key or of a value: each lane brings one
alias Octets = array<Octet, 8>;

fn key_octets(first: u32, lane: u32) -> Octets {
    return octets_of_all(key_octet(first + lane));
}

fn value_octets(first: u32, lane: u32) -> Octets {
    return octets_of_all(value_octet(first + lane));
}

fn octets_of_all(own: Octet) -> Octets {
    var a = of_all(own[0]);
    var b = of_all(own[1]);
    var octets = Octets();
    for (var i = 0u; i < 8u; i++) {
        octets[i] = Octet(a[i], b[i]);
    }
    return octets;
}
