"""Questions with the newer constructs of patterns, each in the language of every engine that is asked.

The last one is asked for many pairs of persons.
"""

from __future__ import annotations

from benchmarks.support.questions import Question

PATTERN_QUESTIONS = (
    Question(
        "persons of some ages, or young or old and married",
        """
        query ask($ages: [I32], $young: I32, $old: I32) {
            match { $p: Person  $p.age in $ages or $p.married and ($p.age < $young or $p.age > $old) }
            return { $p.gender as gender, count($p) as persons } order { gender }
        }
        """,
        """
        MATCH (p:Person)
        WHERE p.age IN $ages OR p.married AND (p.age < $young OR p.age > $old)
        RETURN p.gender, count(*) ORDER BY p.gender
        """,
        """
        SELECT gender, count(*) FROM Person
        WHERE list_contains($ages, age) OR married AND (age < $young OR age > $old)
        GROUP BY gender ORDER BY gender
        """,
        {"ages": [33, 44, 55, 66], "young": 20, "old": 80},
    ),
    Question(
        "the interests of each old person",
        """
        query ask($age: I32) {
            match { $p hasInterest $i  $p.age >= $age }
            return { $p.number as number, collect($i.name) as interests }
            order { number } limit 20
        }
        """,
        """
        MATCH (p:Person)-[:HasInterest]->(i:Interest) WHERE p.age >= $age
        RETURN p.number AS number, collect(i.name) ORDER BY number LIMIT 20
        """,
        """
        SELECT h.source, list(i.name)
        FROM HasInterest h JOIN Person p ON p.number = h.source JOIN Interest i ON i.number = h.target
        WHERE p.age >= $age GROUP BY h.source ORDER BY h.source LIMIT 20
        """,
        {"age": 60},
    ),
    Question(
        "cities and ages, each pair once",
        """
        query ask($age: I32) {
            match { $p livesIn $c  $p.age >= $age }
            return distinct { $c.name as city, $p.age as age } order { city, age desc } limit 10
        }
        """,
        """
        MATCH (p:Person)-[:LivesIn]->(c:City) WHERE p.age >= $age
        RETURN DISTINCT c.name AS city, p.age AS age ORDER BY city, age DESC LIMIT 10
        """,
        """
        SELECT DISTINCT c.name AS city, p.age AS age
        FROM LivesIn l JOIN Person p ON p.number = l.source JOIN City c ON c.number = l.target
        WHERE p.age >= $age ORDER BY city, age DESC LIMIT 10
        """,
        {"age": 40},
    ),
    Question(
        "the oldest cities of many persons",
        """
        query ask($least: I64) {
            match { $p livesIn $c }
            return { $c.number as number, avg($p.age) as age }
            having { count($p) > $least } order { age desc, number } limit 5
        }
        """,
        """
        MATCH (p:Person)-[:LivesIn]->(c:City) WITH c.number AS number, avg(p.age) AS age, count(*) AS persons
        WHERE persons > $least RETURN number, age ORDER BY age DESC, number LIMIT 5
        """,
        """
        SELECT l.target AS number, avg(p.age) AS age FROM LivesIn l JOIN Person p ON p.number = l.source
        GROUP BY l.target HAVING count(*) > $least ORDER BY age DESC, number LIMIT 5
        """,
        {"least": 12},
    ),
    Question(
        "two follows away, either way",
        """
        query ask($number: I64) {
            match { $p: Person { number: $number }  $p <follows>{1,2} $q }
            return { count($q) as persons }
        }
        """,
        """
        MATCH (p:Person)-[:Follows*1..2]-(q:Person)
        WHERE p.number = $number AND q.number <> $number RETURN count(DISTINCT q.number)
        """,
        """
        WITH either AS (
            SELECT source, target FROM Follows UNION ALL SELECT target, source FROM Follows
        ), near AS (SELECT target FROM either WHERE source = $number)
        SELECT count(*) FROM (
            SELECT target FROM near
            UNION SELECT e.target FROM either e JOIN near n ON e.source = n.target
        ) WHERE target <> $number
        """,
        {"number": 77},
    ),
    Question(
        "who follows somebody of an age",
        """
        query ask($age: I32) {
            match { $p: Person  exists { $p follows $q  $q.age = $age } }
            return { $p.gender as gender, count($p) as persons } order { gender }
        }
        """,
        """
        MATCH (p:Person) WHERE EXISTS { MATCH (p)-[:Follows]->(q:Person) WHERE q.age = $age }
        RETURN p.gender, count(*) ORDER BY p.gender
        """,
        """
        SELECT gender, count(*) FROM Person p WHERE EXISTS (
            SELECT 1 FROM Follows f JOIN Person q ON q.number = f.target
            WHERE f.source = p.number AND q.age = $age
        ) GROUP BY gender ORDER BY gender
        """,
        {"age": 40},
    ),
    Question(
        "who has no interest of a name",
        """
        query ask($interest: String) {
            match { $p: Person  not exists { $p hasInterest $i  $i.name = $interest } }
            return { count($p) as persons }
        }
        """,
        """
        MATCH (p:Person)
        WHERE NOT EXISTS { MATCH (p)-[:HasInterest]->(i:Interest) WHERE i.name = $interest }
        RETURN count(*)
        """,
        """
        SELECT count(*) FROM Person p WHERE NOT EXISTS (
            SELECT 1 FROM HasInterest h JOIN Interest i ON i.number = h.target
            WHERE h.source = p.number AND i.name = $interest
        )
        """,
        {"interest": "tennis"},
    ),
    Question(
        "who has many followers",
        """
        query ask($most: I64) {
            match { $p: Person  count { $f follows $p } > $most }
            return { count($p) as persons, max($p.age) as oldest }
        }
        """,
        """
        MATCH (p:Person) WHERE COUNT { MATCH (p)<-[:Follows]-(f:Person) } > $most
        RETURN count(*), max(p.age)
        """,
        """
        WITH most AS (
            SELECT target AS number FROM Follows GROUP BY target HAVING count(*) > $most
        )
        SELECT count(*), max(p.age) FROM most JOIN Person p USING (number)
        """,
        {"most": 40},
    ),
    Question(
        "old persons per city, none included",
        """
        query ask($age: I32) {
            match { $c: City  optional { $p livesIn $c  $p.age >= $age } }
            return { $c.number as number, count($p) as persons }
            order { persons asc, number } limit 5
        }
        """,
        """
        MATCH (c:City) OPTIONAL MATCH (p:Person)-[:LivesIn]->(c) WHERE p.age >= $age
        RETURN c.number AS number, count(p) AS persons ORDER BY persons, number LIMIT 5
        """,
        """
        SELECT c.number, count(p.number) AS persons
        FROM City c LEFT JOIN (LivesIn l JOIN Person p ON p.number = l.source AND p.age >= $age)
        ON l.target = c.number
        GROUP BY c.number ORDER BY persons, c.number LIMIT 5
        """,
        {"age": 70},
    ),
    Question(
        "strong interests and their mean level",
        """
        query ask($level: I32) {
            match { $p $h: hasInterest $i  $h.level >= $level }
            return { $i.number as number, count($h) as persons, avg($h.level) as level }
            order { persons desc, number } limit 5
        }
        """,
        """
        MATCH (p:Person)-[h:HasInterest]->(i:Interest) WHERE h.level >= $level
        RETURN i.number AS number, count(*) AS persons, avg(h.level) AS level
        ORDER BY persons DESC, number LIMIT 5
        """,
        """
        SELECT target, count(*) AS persons, avg(level) FROM HasInterest WHERE level >= $level
        GROUP BY target ORDER BY persons DESC, target LIMIT 5
        """,
        {"level": 8},
    ),
)

SHORTEST = Question(
    "shortest path between two",
    """
    query ask($a: I64, $b: I64) {
        match {
            $x: Person { number: $a }  $y: Person { number: $b }
            $x $p: shortest follows{1,6} $y
        }
        return { $p.length as length }
    }
    """,
    """
    MATCH path = (x:Person)-[:Follows* SHORTEST 1..6]->(y:Person)
    WHERE x.number = $a AND y.number = $b RETURN length(path)
    """,
    """
    WITH RECURSIVE reached(number, depth) USING KEY (number) AS (
        SELECT $a::BIGINT, 0
        UNION
        SELECT f.target, r.depth + 1
        FROM reached r JOIN Follows f ON f.source = r.number
        LEFT JOIN recurring.reached known ON known.number = f.target
        WHERE r.depth < 6 AND known.number IS NULL
    )
    SELECT depth FROM reached WHERE number = $b
    """,
)
"""Asked for pairs of persons, `a` and `b`."""
