"""Source texts that several language tests start from."""

SCHEMA = """\
// a small library
interface Named { name: String @index }

node Author @description("who writes") implements Named {
    slug: String @key   // short and stable
    born: I32?
    tags: [String]?
    mood: enum(calm, wild-ish, 3-way)?
    bio: String?
    vec: Vector(3)? @embed(bio) @index
    seen: DateTime?
    photo: Blob?
    @range(born, -5..2100)
    @check(slug, "^[a-z]+\\\\d*$")
}

node Book { isbn: String  title: String @unique  price: F64? @backfill("1.5")  @key(isbn) }

/* who wrote what */
edge Wrote: Author -> Book @card(0..9) { year: I32?  @unique(src, dst) }
edge Cites: Book -> Book
edge Knows: Author -> Author @rename_from("Met") { since: Date? }
"""

QUERIES = """\
// reads
query by_slug($slug: String) @description("one author") @instruction("use the slug") {
    match { $a: Author { slug: $slug, } }
    return { $a.slug, $a.born as year  $a }
}

query busy($n: I32?, $words: [String], $v: Vector(3)) {
    match {
        $a: Author { mood: "calm", tags: "x" }
        $a wrote $b
        $a knows{1,3} $f
        $b: Book
        not { $f wrote $_  not { $f.born = $a.born } }
        $b.title contains "graph"   $b.title starts_with "A"
        $a.seen < now()   $a.seen >= datetime("2024-01-31T10:00:00Z")
        search($a.bio, "cat")   fuzzy($b.title, "grph", 1)
        $b.price >= 0.25
    }
    return { $a.slug as who, count($b) as books, max(bm25($a.bio, "cat")) as best }
    order { books desc, who }
    limit 10
}

query near($v: Vector(3), $q: String) {
    match { $a: Author }
    return { $a.slug, nearest($a.vec, $v) as d, rrf(nearest($a.vec, $v), bm25($a.bio, $q), 60) as s }
    order { s, d asc }
    limit 3
}

// writes
query add($slug: String, $born: I32?) {
    insert Author { slug: $slug, name: "n", born: $born  tags: ["a", "b"]  vec: [1.0, 0, 2.5] }
    insert Wrote { from: $slug, to: "b1" }
    update Author set { seen: now(), mood: "wild-ish" } where born >= 1900
    delete Book where isbn != "b1"
}
"""
