"""Questions with the newer forms of results, each in the language of every engine that is asked."""

from __future__ import annotations

from benchmarks.support.questions import Question

RESULT_QUESTIONS = (
    Question(
        "how many ages by gender",
        """
        query ask() {
            match { $p: Person }
            return { $p.gender as gender, count(distinct $p.age) as ages } order { gender }
        }
        """,
        "MATCH (p:Person) RETURN p.gender, count(DISTINCT p.age) ORDER BY p.gender",
        "SELECT gender, count(DISTINCT age) FROM Person GROUP BY gender ORDER BY gender",
        {},
    ),
    Question(
        "whom a person follows, in a list",
        """
        query ask($number: I64) {
            match { $p: Person { number: $number }  $p follows $q }
            return { $p.number as person, collect($q.age) as ages }
        }
        """,
        """
        MATCH (p:Person)-[:Follows]->(q:Person) WHERE p.number = $number
        WITH p, q ORDER BY cast(q.number, "STRING") LIMIT 1000000 RETURN p.number, collect(q.age)
        """,
        """
        SELECT $number, list(q.age ORDER BY CAST(q.number AS VARCHAR))
        FROM Follows f JOIN Person q ON q.number = f.target WHERE f.source = $number
        """,
        {"number": 77},
    ),
    Question(
        "distinct ages, oldest first",
        """
        query ask() {
            match { $p: Person }
            return distinct { $p.age as age } order { age desc } limit 10
        }
        """,
        "MATCH (p:Person) RETURN DISTINCT p.age AS age ORDER BY age DESC LIMIT 10",
        "SELECT DISTINCT age FROM Person ORDER BY age DESC LIMIT 10",
        {},
    ),
    Question(
        "persons with more than 80 followers",
        """
        query ask() {
            match { $p follows $q }
            return { $q.number as person, count($p) as followers }
            having { followers > 80 }
            order { followers desc, person }
        }
        """,
        """
        MATCH (p:Person)-[:Follows]->(q:Person) WITH q.number AS person, count(*) AS followers
        WHERE followers > 80 RETURN person, followers ORDER BY followers DESC, person
        """,
        """
        SELECT target, count(*) AS followers FROM Follows GROUP BY target HAVING count(*) > 80
        ORDER BY followers DESC, target
        """,
        {},
    ),
)
