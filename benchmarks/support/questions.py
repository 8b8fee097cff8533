"""Nine questions about a social network, each in the language of every engine that is asked.

Every question has one right answer: where rows could tie, their numbers decide. Peers are asked in
the quickest way we have found: the path counts of SQL are spelled out as sums of degrees, because as
joins they take fifty times as long, and paths in Cypher run from the node that is grouped by.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    gq: str
    cypher: str
    sql: str
    parameters: dict[str, object] = field(default_factory=dict)


QUESTIONS = (
    Question(
        "top 3 followed",
        """
        query ask() {
            match { $f follows $p }
            return { $p.number as number, $p.name as name, count($f) as followers }
            order { followers desc } limit 3
        }
        """,
        """
        MATCH (p:Person)<-[:Follows]-(f:Person)
        RETURN p.number, p.name, count(*) AS followers
        ORDER BY followers DESC, p.number LIMIT 3
        """,
        """
        WITH most AS (
            SELECT target AS number, count(*) AS followers FROM Follows
            GROUP BY target ORDER BY followers DESC, target LIMIT 3
        )
        SELECT p.number, p.name, m.followers FROM most m JOIN Person p USING (number)
        ORDER BY m.followers DESC, p.number
        """,
    ),
    Question(
        "city of the most followed",
        """
        query ask() {
            match { $f follows $p  $p livesIn $c  $c cityIn $s  $s stateIn $k }
            return {
                $p.number as number, $p.name as name, count($f) as followers,
                $c.name as city, $s.name as state, $k.name as country
            }
            order { followers desc } limit 1
        }
        """,
        """
        MATCH (p:Person)<-[:Follows]-(f:Person)
        WITH p.number AS number, count(*) AS followers ORDER BY followers DESC, number LIMIT 1
        MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(s:State)-[:StateIn]->(k:Country)
        WHERE p.number = number
        RETURN p.number, p.name, followers, c.name, s.name, k.name
        """,
        """
        WITH most AS (
            SELECT target AS number, count(*) AS followers FROM Follows
            GROUP BY target ORDER BY followers DESC, target LIMIT 1
        )
        SELECT p.number, p.name, m.followers, c.name, s.name, k.name
        FROM most m JOIN Person p USING (number)
        JOIN LivesIn l ON l.source = p.number JOIN City c ON c.number = l.target
        JOIN CityIn i ON i.source = c.number JOIN State s ON s.number = i.target
        JOIN StateIn t ON t.source = s.number JOIN Country k ON k.number = t.target
        """,
    ),
    Question(
        "youngest cities of a country",
        """
        query ask($country: String) {
            match { $p livesIn $c  $c cityIn $s  $s stateIn $k  $k: Country { name: $country } }
            return { $c.number as number, $c.name as city, avg($p.age) as age }
            order { age asc } limit 5
        }
        """,
        """
        MATCH (p:Person)-[:LivesIn]->(c:City)-[:CityIn]->(:State)-[:StateIn]->(k:Country)
        WHERE k.name = $country
        RETURN c.number, c.name, avg(p.age) AS age ORDER BY age, c.number LIMIT 5
        """,
        """
        SELECT c.number, c.name, avg(p.age) AS age
        FROM Person p JOIN LivesIn l ON l.source = p.number JOIN City c ON c.number = l.target
        JOIN CityIn i ON i.source = c.number JOIN StateIn t ON t.source = i.target
        JOIN Country k ON k.number = t.target
        WHERE k.name = $country
        GROUP BY c.number, c.name ORDER BY age, c.number LIMIT 5
        """,
        {"country": "Canada"},
    ),
    Question(
        "persons of an age range per country",
        """
        query ask($low: I32, $high: I32) {
            match {
                $p: Person  $p.age >= $low  $p.age <= $high
                $p livesIn $c  $c cityIn $s  $s stateIn $k
            }
            return { $k.name as country, count($p) as persons }
            order { persons desc } limit 3
        }
        """,
        """
        MATCH (p:Person)-[:LivesIn]->(:City)-[:CityIn]->(:State)-[:StateIn]->(k:Country)
        WHERE p.age >= $low AND p.age <= $high
        RETURN k.name, count(*) AS persons ORDER BY persons DESC, k.name LIMIT 3
        """,
        """
        SELECT k.name, count(*) AS persons
        FROM Person p JOIN LivesIn l ON l.source = p.number
        JOIN CityIn i ON i.source = l.target JOIN StateIn t ON t.source = i.target
        JOIN Country k ON k.number = t.target
        WHERE p.age >= $low AND p.age <= $high
        GROUP BY k.name ORDER BY persons DESC, k.name LIMIT 3
        """,
        {"low": 30, "high": 40},
    ),
    Question(
        "men in a city with an interest",
        """
        query ask($gender: String, $city: String, $country: String, $interest: String) {
            match {
                $p: Person { gender: $gender }
                $p hasInterest $i  $i: Interest { name: $interest }
                $p livesIn $c  $c: City { name: $city }
                $c cityIn $s  $s stateIn $k  $k: Country { name: $country }
            }
            return { count($p) as persons }
        }
        """,
        """
        MATCH (p:Person)-[:HasInterest]->(i:Interest),
              (p)-[:LivesIn]->(c:City)-[:CityIn]->(:State)-[:StateIn]->(k:Country)
        WHERE p.gender = $gender AND i.name = $interest AND c.name = $city AND k.name = $country
        RETURN count(*)
        """,
        """
        SELECT count(*)
        FROM Person p JOIN HasInterest h ON h.source = p.number
        JOIN Interest i ON i.number = h.target JOIN LivesIn l ON l.source = p.number
        JOIN City c ON c.number = l.target JOIN CityIn n ON n.source = c.number
        JOIN StateIn t ON t.source = n.target JOIN Country k ON k.number = t.target
        WHERE p.gender = $gender AND i.name = $interest AND c.name = $city AND k.name = $country
        """,
        {
            "gender": "male",
            "city": "London",
            "country": "United Kingdom",
            "interest": "fine dining",
        },
    ),
    Question(
        "city with most women with an interest",
        """
        query ask($gender: String, $interest: String) {
            match {
                $p: Person { gender: $gender }
                $p hasInterest $i  $i: Interest { name: $interest }
                $p livesIn $c
            }
            return { $c.number as number, $c.name as city, count($p) as persons }
            order { persons desc } limit 5
        }
        """,
        """
        MATCH (p:Person)-[:HasInterest]->(i:Interest), (p)-[:LivesIn]->(c:City)
        WHERE p.gender = $gender AND i.name = $interest
        RETURN c.number, c.name, count(*) AS persons
        ORDER BY persons DESC, c.number LIMIT 5
        """,
        """
        SELECT c.number, c.name, count(*) AS persons
        FROM Person p JOIN HasInterest h ON h.source = p.number
        JOIN Interest i ON i.number = h.target JOIN LivesIn l ON l.source = p.number
        JOIN City c ON c.number = l.target
        WHERE p.gender = $gender AND i.name = $interest
        GROUP BY c.number, c.name ORDER BY persons DESC, c.number LIMIT 5
        """,
        {"gender": "female", "interest": "tennis"},
    ),
    Question(
        "state with most of an age with an interest",
        """
        query ask($country: String, $low: I32, $high: I32, $interest: String) {
            match {
                $p: Person  $p.age >= $low  $p.age <= $high
                $p hasInterest $i  $i: Interest { name: $interest }
                $p livesIn $c  $c cityIn $s  $s stateIn $k  $k: Country { name: $country }
            }
            return { $s.number as number, $s.name as state, count($p) as persons }
            order { persons desc } limit 1
        }
        """,
        """
        MATCH (p:Person)-[:LivesIn]->(:City)-[:CityIn]->(s:State)-[:StateIn]->(k:Country),
              (p)-[:HasInterest]->(i:Interest)
        WHERE p.age >= $low AND p.age <= $high AND i.name = $interest AND k.name = $country
        RETURN s.number, s.name, count(*) AS persons
        ORDER BY persons DESC, s.number LIMIT 1
        """,
        """
        SELECT s.number, s.name, count(*) AS persons
        FROM Person p JOIN HasInterest h ON h.source = p.number
        JOIN Interest i ON i.number = h.target JOIN LivesIn l ON l.source = p.number
        JOIN CityIn n ON n.source = l.target JOIN State s ON s.number = n.target
        JOIN StateIn t ON t.source = s.number JOIN Country k ON k.number = t.target
        WHERE p.age >= $low AND p.age <= $high AND i.name = $interest AND k.name = $country
        GROUP BY s.number, s.name ORDER BY persons DESC, s.number LIMIT 1
        """,
        {"country": "United States", "low": 23, "high": 30, "interest": "photography"},
    ),
    Question(
        "2-hop paths",
        """
        query ask() {
            match { $a follows $b  $b follows $c }
            return { count($a) as paths }
        }
        """,
        "MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person) RETURN count(*)",
        """
        SELECT sum(i.edges * o.edges)
        FROM (SELECT target AS number, count(*) AS edges FROM Follows GROUP BY target) i
        JOIN (SELECT source AS number, count(*) AS edges FROM Follows GROUP BY source) o
        USING (number)
        """,
    ),
    Question(
        "2-hop paths by ages",
        """
        query ask($below: I32, $above: I32) {
            match { $a follows $b  $b follows $c  $b.age < $below  $c.age > $above }
            return { count($a) as paths }
        }
        """,
        """
        MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)
        WHERE b.age < $below AND c.age > $above
        RETURN count(*)
        """,
        """
        SELECT sum(i.edges * o.edges)
        FROM (SELECT target AS number, count(*) AS edges FROM Follows GROUP BY target) i
        JOIN (
            SELECT f.source AS number, count(*) AS edges
            FROM Follows f JOIN Person c ON c.number = f.target
            WHERE c.age > $above GROUP BY f.source
        ) o USING (number)
        JOIN Person b USING (number) WHERE b.age < $below
        """,
        {"below": 50, "above": 25},
    ),
)
