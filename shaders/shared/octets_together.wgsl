// Eight octets of a row of keys or of values, from the first on: each lane brings one
alias Octets = array<Octet, 8>;

fn key_octets(row: u32, first: u32, lane: u32) -> Octets {
    return octets_of_all(key_octet(row, first + lane, key_scale(row, (first + lane) / BLOCK)));
}

fn value_octets(row: u32, first: u32, lane: u32) -> Octets {
    return octets_of_all(value_octet(row, first + lane, value_scale(row, (first + lane) / BLOCK)));
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
