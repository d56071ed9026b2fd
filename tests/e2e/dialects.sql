-- # answered, as analysts write who know other databases; after ==, the same for duckdb where that does not read it
SELECT COUNT(1) AS n FROM people p WHERE p.age != 30
SELECT COUNT(*)::int AS n FROM people WHERE health ILIKE 'GOOD%'
select count(*) from people where age between 18 and 64 and sex <> 'M'
SELECT COUNT(*) FROM people WHERE schooling IS NOT NULL /* those who answered */
SELECT COUNT(*) FROM people WHERE 1=1 AND sex='F' AND age IS NOT NULL AND age > 20
SELECT "health", "sex", COUNT(*) FROM "people" GROUP BY ALL
SELECT p.health, ROUND(AVG(p.income), 0) AS mean_income FROM people AS p GROUP BY p.health ORDER BY mean_income DESC
SELECT ROUND(AVG(income)::numeric, 2) FROM people
SELECT 100.0 * AVG(CASE WHEN limited = 'yes' THEN 1 ELSE 0 END) AS pct FROM people
SELECT health, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM people GROUP BY health
SELECT sex, health, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY sex) AS pct FROM people GROUP BY sex, health
SELECT health, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people) AS share FROM people GROUP BY health
SELECT TOP 5 site, COUNT(*) AS n FROM people GROUP BY site ORDER BY n DESC == SELECT site, COUNT(*) AS n FROM people GROUP BY site LIMIT 9
SELECT site, COUNT(*) AS n FROM people GROUP BY site ORDER BY n DESC FETCH FIRST 3 ROWS ONLY == SELECT site, COUNT(*) AS n FROM people GROUP BY site LIMIT 9
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) AS median_income FROM people
SELECT APPROX_QUANTILES(age, 100)[OFFSET(90)] AS p90 FROM people == SELECT QUANTILE_DISC(age, 0.9) FROM people
SELECT APPROX_PERCENTILE(income, 0.25) AS q FROM people == SELECT QUANTILE_DISC(income, 0.25) FROM people
SELECT CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END AS grp, MEDIAN(visits) FROM people GROUP BY 1
SELECT CASE WHEN age < 18 THEN 'child' ELSE CASE WHEN sex = 'F' THEN 'woman' ELSE 'man' END END AS who, COUNT(*) FROM people GROUP BY 1
SELECT sex, COUNT(*) FROM visits v NATURAL JOIN people GROUP BY sex
SELECT COUNT(*) FROM visits v LEFT JOIN people p ON v.person = p.person WHERE p.sex = 'F'
SELECT p.sex, COUNT(v.person) FROM people p LEFT JOIN visits v ON p.person = v.person GROUP BY p.sex
SELECT p.health, SUM(v.amount) AS total FROM people p LEFT JOIN visits v USING (person) WHERE p.age > 20 GROUP BY p.health
SELECT COUNT(*) FROM people WHERE person NOT IN (SELECT person FROM visits)
SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.person = p.person)
SELECT AVG(age) FROM people WHERE person IN (SELECT person FROM visits)
SELECT COUNT(*) FROM (SELECT person FROM visits GROUP BY person HAVING COUNT(*) >= 3) t == SELECT COUNT(*) FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) t WHERE n >= 3
SELECT p.sex, COUNT(*) FROM people p LEFT JOIN visits v ON p.person = v.person GROUP BY p.sex
SELECT COUNT(*) FROM people p LEFT JOIN visits v USING (person) WHERE v.person IS NULL
SELECT n, COUNT(*) AS patients FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) x GROUP BY n ORDER BY n
SELECT CASE WHEN n = 1 THEN 'once' ELSE 'repeat' END AS kind, COUNT(*), AVG(s) FROM (SELECT person, COUNT(*) AS n, SUM(amount) AS s FROM visits GROUP BY person) x GROUP BY 1
WITH per AS (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) SELECT p.sex, AVG(COALESCE(per.n, 0)) FROM people p LEFT JOIN per ON per.person = p.person GROUP BY p.sex
SELECT COUNT(DISTINCT person) * 1.0 / (SELECT COUNT(*) FROM people) FROM visits
SELECT COUNT(DISTINCT person) FROM visits WHERE emergency = 'yes' AND person IN (SELECT person FROM visits WHERE emergency = 'no')
SELECT p.health, COUNT(*) AS n FROM people p, visits v WHERE p.person = v.person AND v.emergency = 'yes' GROUP BY p.health
SELECT p.health, COUNT(*) AS n FROM people p INNER JOIN visits v ON p.person = v.person AND v.emergency = 'yes' GROUP BY p.health
SELECT p.sex, v.emergency, AVG(v.amount) AS a FROM (SELECT * FROM visits WHERE amount > 0) v JOIN people p USING (person) GROUP BY 1, 2
WITH e AS (SELECT person, amount FROM visits WHERE emergency = 'yes') SELECT p.sex, AVG(e.amount) FROM e JOIN people p ON e.person = p.person GROUP BY p.sex
SELECT sex, IFNULL(AVG(schooling), 0) AS mean FROM people GROUP BY sex
SELECT AVG(COALESCE(schooling, 0)) FROM people
SELECT AVG(NULLIF(visits, 0)) FROM people
SELECT SUM(IFF(sex = 'F', 1, 0)) AS f, SUM(IIF(limited = 'yes', spending, 0)) AS s FROM people == SELECT SUM(IF(sex = 'F', 1, 0)), SUM(IF(limited = 'yes', spending, 0)) FROM people
SELECT AVG(ABS(age - 40)) FROM people
SELECT AVG(income / family) AS per_head FROM people
SELECT TO_CHAR(day, 'YYYY') AS y, COUNT(*) FROM visits GROUP BY y == SELECT STRFTIME(day, '%Y'), COUNT(*) FROM visits GROUP BY 1
SELECT strftime(day, '%Y-%m') AS ym, COUNT(*) FROM visits GROUP BY 1
SELECT strftime('%Y', day) AS y, SUM(amount) FROM visits GROUP BY 1 == SELECT STRFTIME(day, '%Y'), SUM(amount) FROM visits GROUP BY 1
SELECT DATE_TRUNC(day, YEAR) AS y, COUNT(*) FROM visits GROUP BY y == SELECT DATE_TRUNC('year', day), COUNT(*) FROM visits GROUP BY 1
SELECT DATE_TRUNC('quarter', day)::date AS q, COUNT(*) FROM visits GROUP BY q ORDER BY q
SELECT DATE_PART('year', day) AS y, COUNT(*) FROM visits GROUP BY y
SELECT EXTRACT(DOW FROM day) AS dow, COUNT(*) FROM visits GROUP BY dow ORDER BY dow
SELECT DATEPART(month, day) AS m, COUNT(*) FROM visits GROUP BY DATEPART(month, day) == SELECT MONTH(day), COUNT(*) FROM visits GROUP BY 1
SELECT FORMAT_DATE('%Y', day) AS y, COUNT(*) FROM visits GROUP BY y == SELECT STRFTIME(day, '%Y'), COUNT(*) FROM visits GROUP BY 1
SELECT COUNT(*) FROM visits WHERE day >= DATE '1978-12-31' - INTERVAL '30 days'
SELECT COUNT(*) FROM visits WHERE day >= '1977-01-01'::date AND day < '1977-01-01'::date + INTERVAL '1 month'
SELECT COUNT(*) FROM visits WHERE DATEADD(year, 1, day) < '1976-01-01' == SELECT COUNT(*) FROM visits WHERE day + INTERVAL 1 YEAR < DATE '1976-01-01'
SELECT COUNT(*) FROM visits WHERE EXTRACT(YEAR FROM day) = 1976 AND clinic IN ('C01', 'C02')
SELECT COUNT(*) FROM visits WHERE MONTH(day) IN (12, 1, 2)
SELECT CASE WHEN MONTH(day) IN (12,1,2) THEN 'winter' WHEN MONTH(day) IN (6,7,8) THEN 'summer' ELSE 'other' END AS season, COUNT(*), AVG(amount) FROM visits GROUP BY season
SELECT AVG(DATE_DIFF('day', DATE '1974-01-01', day)) FROM visits
SELECT DAYNAME(day) AS d, COUNT(*) FROM visits GROUP BY d
SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 3 == SELECT clinic, COUNT(*) FROM visits GROUP BY clinic LIMIT 9
SELECT clinic, COUNT(*), RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM visits GROUP BY clinic
SELECT YEAR(day) AS y, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY YEAR(day)) AS running FROM visits GROUP BY y
SELECT YEAR(day) AS y, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY YEAR(day)) AS growth FROM visits GROUP BY 1 ORDER BY 1
SELECT COUNT(DISTINCT v.person) * 1.0 / COUNT(*) FROM visits v
SELECT COUNT(*) * 1.0 / COUNT(DISTINCT person) AS visits_per_person FROM visits
SELECT SUM(amount) / COUNT(DISTINCT person) AS per_person FROM visits
SELECT COUNT(DISTINCT CASE WHEN emergency = 'yes' THEN person END) AS e, COUNT(DISTINCT person) AS patients FROM visits
SELECT AVG(n) AS mean FROM (SELECT person, COUNT(*) AS n FROM visits GROUP BY person) t
SELECT COUNT(*) FROM (SELECT DISTINCT person FROM visits WHERE emergency = 'yes') x
SELECT MAX(n) AS largest FROM (SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic) t
WITH m AS (SELECT DATE_TRUNC('year', day) AS y, COUNT(*) AS n FROM visits GROUP BY 1) SELECT AVG(n) AS mean FROM m
WITH a AS (SELECT * FROM visits WHERE emergency = 'yes'), b AS (SELECT * FROM a WHERE amount > 50) SELECT clinic, COUNT(*) FROM b GROUP BY clinic
SELECT COUNT(*) FILTER (WHERE sex = 'F') AS f, COUNT(*) FILTER (WHERE sex = 'M') AS m FROM people
SELECT SUM((age >= 60)::int) AS n, AVG(CAST(limited = 'yes' AS INT)) AS rate FROM people
SELECT COUNTIF(age > 60) / COUNT(*) AS share FROM people == SELECT COUNT_IF(age > 60) / COUNT(*) FROM people
SELECT WIDTH_BUCKET(income, 0, 30000, 5) AS b, COUNT(*) FROM people GROUP BY b == SELECT LEAST(income // 6000 + 1, 6), COUNT(*) FROM people GROUP BY 1
SELECT TRUNC(age / 10) * 10 AS decade, COUNT(*) FROM people GROUP BY decade
SELECT age // 10 * 10 AS decade, AVG(income) FROM people GROUP BY decade
SELECT CONCAT(sex, '-', health) AS k, COUNT(*) FROM people GROUP BY k
SELECT sex || '/' || limited AS k, COUNT(*) FROM people GROUP BY k
SELECT LEFT(health, 1) AS initial, COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM people WHERE STARTS_WITH(health, 'e') OR LENGTH(TRIM(health)) = 4
SELECT VAR_POP(age), STDDEV_POP(age), STDEV(age) AS s, VARP(age) AS v FROM people == SELECT VAR_POP(age), STDDEV_POP(age), STDDEV(age), VAR_POP(age) FROM people
SELECT REGR_SLOPE(visits, age) AS slope FROM people
SELECT sex, AVG(age) AS a FROM people GROUP BY sex HAVING AVG(age) > 20
SELECT health, AVG(visits) FROM people GROUP BY health ORDER BY CASE health WHEN 'excellent' THEN 1 WHEN 'good' THEN 2 WHEN 'fair' THEN 3 ELSE 4 END
SELECT `health`, COUNT(*) AS n FROM `people` GROUP BY `health` == SELECT health, COUNT(*) FROM people GROUP BY health
SELECT [sex], COUNT(*) AS n FROM [dbo].[people] GROUP BY [sex] == SELECT sex, COUNT(*) FROM people GROUP BY sex
SELECT AVG(income) FILTER (WHERE sex = 'F') - AVG(income) FILTER (WHERE sex = 'M') AS gap FROM people
SELECT AVG(CASE WHEN sex='F' THEN income END) / AVG(CASE WHEN sex='M' THEN income END) AS ratio FROM people
SELECT SUM(CASE WHEN sex='F' THEN 1 ELSE 0 END)/COUNT(*)::float AS share_f FROM people
SELECT site, MEDIAN(income), AVG(income), COUNT(*) FROM people GROUP BY site
SELECT COUNT(*) FROM visits WHERE city IN ('Seattle', 'Dayton')
SELECT sex, MEDIAN(income / 1000) AS thousands FROM people GROUP BY sex
SELECT QUANTILE(65 - age, 0.25) AS years_left FROM people == SELECT 65 - QUANTILE_DISC(age, 0.75) FROM people
SELECT COUNT(*) FROM visits WHERE DATE(day) >= TO_DATE('1977-05-01', 'YYYY-MM-DD') == SELECT COUNT(*) FROM visits WHERE day >= DATE '1977-05-01'
SELECT city, COUNT(*) AS n FROM visits WHERE city <> 'Seattle' GROUP BY city HAVING COUNT(*) > 500
SELECT ABS(AVG(income) FILTER (WHERE sex = 'F') - AVG(income) FILTER (WHERE sex = 'M')) AS gap, POWER(AVG(age) - 30, 2) AS p FROM people
SELECT health, IF(COUNT(*) > 100, COUNT(*), 0) AS n, SUM(visits) / NULLIF(SUM(age), 0) AS r FROM people GROUP BY health
SELECT COUNT(*) FROM people WHERE income BETWEEN 5001 AND 9999 AND spending > 33.3
SELECT sex, health, COUNT(*) FROM people GROUP BY ROLLUP (sex, health)
SELECT COALESCE(health, 'all') AS h, COUNT(*), SUM(visits) FROM people GROUP BY health WITH ROLLUP == SELECT COALESCE(health, 'all'), COUNT(*), SUM(visits) FROM people GROUP BY ROLLUP (health)
SELECT sex, limited, GROUPING(sex) AS g, AVG(age) FROM people GROUP BY GROUPING SETS ((sex), (limited), ())
SELECT 'poor' AS k, COUNT(*) AS n FROM people WHERE health = 'poor' UNION ALL SELECT 'all', COUNT(*) FROM people ORDER BY n DESC
SELECT sex, SUM(n) AS total, MAX(n) AS largest FROM (SELECT sex, site, COUNT(*) AS n FROM people GROUP BY sex, site) q GROUP BY sex ORDER BY total
WITH a AS (SELECT sex, health, COUNT(*) AS n FROM people GROUP BY sex, health), b AS (SELECT health, SUM(n) AS t FROM a GROUP BY health) SELECT health, t FROM b ORDER BY t DESC
SELECT p.sex, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person = p.person) GROUP BY p.sex
SELECT sex, health, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex, health), (sex))
WITH m AS (SELECT DATE_TRUNC('month', day) AS m, SUM(amount) AS s FROM visits GROUP BY 1) SELECT YEAR(m) AS y, SUM(s) AS s FROM m GROUP BY YEAR(m)
SELECT YEAR(day) AS y, AVG(COUNT(*)) OVER (ORDER BY YEAR(day) ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS moving FROM visits GROUP BY y
SELECT COUNT(DISTINCT clinic) AS c, COUNT(*) AS n FROM visits WHERE emergency = 'yes'
SELECT p.sex, COUNT(DISTINCT v.clinic) AS clinics FROM visits v JOIN people p USING (person) GROUP BY p.sex
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.person = p.person AND v.amount > 100) AND p.age > 30
SELECT health, COUNT(*) FROM people WHERE person IN (SELECT person FROM visits WHERE emergency = 'yes') GROUP BY health
SELECT clinic, AVG(amount) FROM visits WHERE person IN (SELECT person FROM people WHERE sex = 'F') GROUP BY clinic
SELECT UPPER(health) AS h, COUNT(*) FROM people GROUP BY health
SELECT COUNT(*) FROM people WHERE schooling IS DISTINCT FROM 12
SELECT EOMONTH(day) AS m, COUNT(*) FROM visits GROUP BY EOMONTH(day) == SELECT LAST_DAY(day), COUNT(*) FROM visits GROUP BY 1
SELECT DATENAME(month, day) AS m, DIV0(SUM(amount), COUNT(*)) AS a FROM visits GROUP BY DATENAME(month, day) == SELECT MONTHNAME(day), AVG(amount) FROM visits GROUP BY 1
SELECT DECODE(health, 'poor', 'bad', 'fair', 'bad', 'well') AS h, ROUND(AVG(income), -2) AS i FROM people GROUP BY 1 == SELECT CASE WHEN health IN ('poor', 'fair') THEN 'bad' ELSE 'well' END, ROUND(AVG(income), -2) FROM people GROUP BY 1
SELECT COUNT(*) FROM visits WHERE day > DATEADD(day, -90, '1976-06-30') == SELECT COUNT(*) FROM visits WHERE day > DATE '1976-06-30' - INTERVAL 90 DAY
SELECT AVG(DATE '1979-01-01' - day) AS days FROM visits WHERE emergency = 'yes'
SELECT COUNT(*) AS 'n' FROM people HAVING COUNT(*) > 10
SELECT age DIV 10 * 10 AS decade, COUNT(*) FROM people GROUP BY 1 == SELECT age // 10 * 10, COUNT(*) FROM people GROUP BY 1
SELECT COUNT(*) FROM people WHERE visits IS NOT DISTINCT FROM family
SELECT COUNT(*) FROM people WHERE schooling IS DISTINCT FROM visits
SELECT COUNT(*) FROM people WHERE health LIKE 'g!ood' ESCAPE '!'
SELECT COUNT(*) FROM main.people AS p WHERE sex = 'F'
SELECT COUNT(*) AS n FROM `project.clinic.people` == SELECT COUNT(*) FROM people
SELECT COUNT(*) FROM visits WHERE day >= DATE_SUB('1978-12-31', INTERVAL 30 DAY) == SELECT COUNT(*) FROM visits WHERE day >= DATE '1978-12-31' - INTERVAL 30 DAY
SELECT TO_CHAR(day, 'Mon YYYY') AS m, COUNT(*) FROM visits GROUP BY 1 == SELECT STRFTIME(day, '%b %Y'), COUNT(*) FROM visits GROUP BY 1
SELECT city, AVG(amount) AS a, COUNT(DISTINCT person) AS p FROM visits WHERE city IN ('Seattle', 'Dayton') AND amount > 10 GROUP BY city
SELECT CASE WHEN city IN ('Seattle', 'Dayton') THEN city ELSE 'elsewhere' END AS c, COUNT(*), AVG(amount) FROM visits GROUP BY c
SELECT (SELECT AVG(age) FROM people WHERE sex = 'F') - (SELECT AVG(age) FROM people WHERE sex = 'M') AS gap
SELECT (SELECT COUNT(*) FROM people WHERE sex = 'F') * 100.0 / (SELECT COUNT(*) FROM people) AS pct FROM people LIMIT 1
WITH total AS (SELECT COUNT(*) AS n FROM people) SELECT health, COUNT(*) * 100.0 / total.n AS pct FROM people, total GROUP BY health, total.n
WITH t AS (SELECT sex, AVG(age) AS a FROM people GROUP BY sex), o AS (SELECT AVG(age) AS a FROM people) SELECT t.sex, t.a / o.a AS r FROM t CROSS JOIN o
SELECT health, SUM(visits) * 100.0 / SUM(SUM(visits)) OVER () AS pct FROM people GROUP BY health
SELECT YEAR(day) AS y, AVG(amount) / FIRST_VALUE(AVG(amount)) OVER (ORDER BY YEAR(day)) AS base FROM visits GROUP BY y
SELECT AVG(DATE_DIFF('day', day, DATE '1979-01-01')) FROM visits WHERE EXTRACT(ISOYEAR FROM day) = 1976

-- # refused: the word, and the reason
SELECT APPROX_QUANTILES(age, 4) FROM people == APPROX == a list of quantiles is not answered
SELECT COUNT(*) FROM people WHERE health IN (SELECT health FROM people WHERE sex = 'F') == SELECT health == its exact result would be seen
SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM visits == SELECT COUNT(*) FROM visits == SELECTs that are combined are about the same table
SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM people == UNION == several SELECTs are combined by UNION ALL only
SELECT COUNT(*) FROM visits WHERE day >= CURRENT_DATE - INTERVAL '30 days' == CURRENT_DATE == must not depend on the day
SELECT COUNT(DISTINCT city) FROM visits == COUNT == which texts occur that nobody listed is private
SELECT health FROM people GROUP BY health == health == rows are not shown
SELECT health, MEDIAN(age) FROM people GROUP BY health WITH ROLLUP == SELECT == are asked for in one grouping
SELECT city, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () FROM visits GROUP BY city == SUM == only the common ones are shown
SELECT SUM(n) FROM (SELECT city, COUNT(*) AS n FROM visits GROUP BY city) t == SELECT == only the common ones are shown
SELECT COUNT(*) FROM (SELECT site, COUNT(*) AS n FROM people GROUP BY site) q GROUP BY q.n == q.n == not by its numbers
SELECT sex, SUM(n) FROM (SELECT sex, site, COUNT(*) AS n FROM people GROUP BY sex, site) q GROUP BY site == sex == not grouped by
SELECT COUNT(*) FROM people TABLESAMPLE BERNOULLI (10) == TABLESAMPLE == sampling is not answered
SELECT (age / 10)::int * 10 AS dec, COUNT(*) FROM people GROUP BY dec == (age == a cast to whole numbers
SELECT COUNT(*) FROM people WHERE REGEXP_LIKE(health, '^g') == REGEXP_LIKE == a regular expression is not answered
SELECT AVG(LN(income + 1)) FROM people == LN == LN of a row has no exact value
SELECT COUNT(*) FROM people WHERE sex = "F" == "F" == 'F' is not a column
SELECT AVG(DISTINCT age) FROM people == AVG == DISTINCT is answered in COUNT(DISTINCT person) only
SELECT MODE(health) FROM people == MODE == one person's value would be seen
SELECT COUNT(*) FROM visits WHERE day > '1975-02-30' == '1975 == is not a date
SELECT city, AVG(amount) FROM visits GROUP BY city == AVG == only COUNT(*) is answered
SELECT COUNT(*) OVER () FROM people == COUNT == a window over rows is not answered
SELECT clinic, SUM(COUNT(*)) OVER (ORDER BY COUNT(*)) FROM visits GROUP BY clinic == SUM == ordered by what groups are grouped by
SELECT NTILE(4) OVER (ORDER BY age) AS q, COUNT(*) FROM people GROUP BY 1 == NTILE == it is a window over rows
SELECT (SELECT AVG(age) FROM people) AS a FROM people == (SELECT == rows are not shown
SELECT sex, COUNT(*) FROM people, (SELECT MAX(age) AS m FROM people) q WHERE age > q.m GROUP BY sex == q.m == its exact result would be seen
SELECT sex, COUNT(*) / (SELECT COUNT(DISTINCT site) FROM people) AS r FROM people GROUP BY sex == SELECT COUNT(DISTINCT == has one count, sum or average here
