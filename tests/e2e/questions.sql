-- Questions as analysts type them, over two tables about the same persons (discreet.example.write_clinic):
--   people  the bundled people, one row a person, with a key column `person`
--   visits  made up: person, day (a date, 1974-01-01 to 1978-12-31), clinic (a category of 12), city (text whose values
--           are not listed), amount (a number, 0 to 2000, step 1), minutes (a number, 0 to 240, step 5), emergency (a
--           category, no or yes); up to 5 rows a person count
-- tests/e2e/test_questions.py asks them; a line that begins with "-- #" names the section that follows.

-- # answered
SELECT COUNT(*) FROM people;
SELECT COUNT(*) AS n FROM people WHERE age >= 40 AND (sex = 'F' OR visits > 3);
SELECT health, COUNT(*) FROM people GROUP BY health;
SELECT health, sex, COUNT(*) FROM people WHERE age >= 40 GROUP BY health, sex;
SELECT sex, AVG(age) FROM people GROUP BY sex;
SELECT site, AVG(income), COUNT(*) FROM people GROUP BY site;
SELECT site, SUM(spending) AS total, AVG(spending) AS mean FROM people WHERE limited = 'yes' GROUP BY site ORDER BY total DESC;
SELECT coinsurance, AVG(visits), STDDEV(visits) FROM people GROUP BY coinsurance;
SELECT health, MEDIAN(age) FROM people GROUP BY health;
SELECT MEDIAN(income) FROM people WHERE coinsurance = 0;
SELECT QUANTILE(spending, 0.9) FROM people WHERE age > 30;
SELECT site, QUANTILE(visits, 0.75) FROM people GROUP BY site;
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM people GROUP BY decade ORDER BY decade;
SELECT FLOOR(age / 10) * 10 AS decade, AVG(visits) FROM people GROUP BY 1;
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'older' END AS who, COUNT(*) FROM people GROUP BY who;
SELECT AVG(CASE WHEN limited = 'yes' THEN 1 ELSE 0 END) FROM people;
SELECT health, AVG(CASE WHEN admissions > 0 THEN 1.0 ELSE 0.0 END) AS rate FROM people GROUP BY health;
SELECT COUNT(*) FILTER (WHERE limited = 'yes') * 100.0 / COUNT(*) AS percent FROM people;
SELECT sex, COUNT(*) FILTER (WHERE health = 'poor') AS poor, COUNT(*) AS all_of_them FROM people GROUP BY sex;
SELECT COUNT_IF(visits = 0) FROM people;
SELECT SUM(visits) / COUNT(*) FROM people WHERE sex = 'M';
SELECT VARIANCE(age) FROM people;
SELECT VAR_SAMP(spending), VAR_POP(spending) FROM people;
SELECT STDDEV(income) FROM people WHERE schooling >= 12;
SELECT CORR(age, visits) FROM people;
SELECT COVAR_POP(income, schooling) FROM people;
SELECT health, COUNT(*) FROM people GROUP BY health HAVING COUNT(*) > 500;
SELECT site, COUNT(*) AS n FROM people GROUP BY site ORDER BY n DESC LIMIT 3;
SELECT COUNT(*) FROM people WHERE health LIKE '%oo%';
SELECT COUNT(*) FROM people WHERE health NOT IN ('good', 'excellent');
SELECT COUNT(*) FROM people WHERE age + 5 > 40;
SELECT COUNT(*) FROM people WHERE income / 1000 BETWEEN 5 AND 10;
SELECT COUNT(schooling) FROM people;
SELECT COUNT(*) FROM people WHERE schooling IS NULL;
SELECT AVG(schooling) FROM people WHERE NOT (site = 1);
SELECT COUNT(DISTINCT person) FROM visits;
SELECT COUNT(DISTINCT person) FROM visits WHERE emergency = 'yes';
SELECT clinic, COUNT(*) FROM visits GROUP BY clinic;
SELECT clinic, COUNT(DISTINCT person) FROM visits GROUP BY clinic;
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) FROM visits GROUP BY month ORDER BY month;
SELECT EXTRACT(YEAR FROM day) AS year, SUM(amount) FROM visits GROUP BY year;
SELECT MONTH(day), AVG(amount) FROM visits GROUP BY 1;
SELECT COUNT(*) FROM visits WHERE day >= DATE '1976-01-01' AND day < DATE '1977-01-01';
SELECT COUNT(*) FROM visits WHERE day BETWEEN '1975-03-01' AND '1975-03-31';
SELECT DAYOFWEEK(day) AS weekday, COUNT(*) FROM visits GROUP BY weekday;
SELECT city, COUNT(*) FROM visits GROUP BY city;
SELECT city, COUNT(*) AS n FROM visits GROUP BY city ORDER BY n DESC LIMIT 5;
SELECT AVG(amount), AVG(minutes), COUNT(*) FROM visits WHERE emergency = 'no';
SELECT clinic, MEDIAN(amount) FROM visits GROUP BY clinic;
SELECT SUM(amount * minutes) FROM visits;
SELECT p.sex, COUNT(*) FROM visits v JOIN people p USING (person) GROUP BY p.sex;
SELECT p.health, AVG(v.amount) FROM visits v JOIN people p ON v.person = p.person WHERE p.age >= 40 GROUP BY p.health;
SELECT p.site, COUNT(DISTINCT v.person) FROM visits v JOIN people p USING (person) WHERE v.day >= DATE '1977-01-01' GROUP BY p.site;
WITH old AS (SELECT * FROM people WHERE age >= 50) SELECT health, COUNT(*) FROM old GROUP BY health;

-- # refused
SELECT * FROM people LIMIT 5;
SELECT MAX(income) FROM people;
SELECT DISTINCT income FROM people;
SELECT COUNT(*) FROM people WHERE income > (SELECT AVG(income) FROM people);
SELECT COUNT(*) FROM visits a JOIN visits b ON a.city = b.city;
SELECT person, COUNT(*) FROM visits GROUP BY person;

-- # answered, the kinds of question that were put to another library
SELECT health, AVG(income) FROM people GROUP BY health;
SELECT site, COUNT(*) AS n, AVG(age) AS mean_age FROM people GROUP BY site;
SELECT coinsurance, COUNT(*) AS n FROM people GROUP BY coinsurance ORDER BY n DESC LIMIT 3;
SELECT STDDEV(age) FROM people;
SELECT VARIANCE(visits) FROM people;
SELECT COUNT(DISTINCT person) FROM visits WHERE amount > 100;
SELECT site, COUNT(*) AS n FROM people GROUP BY site HAVING n > 900;
SELECT SUM(CASE WHEN health = 'poor' OR health = 'fair' THEN 1 ELSE 0 END) FROM people;
SELECT COUNT(*) FROM people WHERE health LIKE 'exc%';
SELECT MEDIAN(age) FROM people;
SELECT FLOOR(age / 20) AS bin, COUNT(*) FROM people GROUP BY FLOOR(age / 20);
SELECT MONTH(day) AS month, COUNT(*) FROM visits GROUP BY month;
SELECT sex, AVG(age) FROM (SELECT sex, age FROM people WHERE age >= 18) AS grown GROUP BY sex;

-- # refused, there and here
SELECT MIN(age) FROM people;
