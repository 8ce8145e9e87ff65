INSERT INTO a VALUES (NULL, timestamp '2024-01-01' + INTERVAL '661 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '702 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '626 seconds', 1), (1, timestamp '2024-01-01' + INTERVAL '685 seconds', 5);
INSERT INTO t VALUES
(1000, 2, '2024-01-01 00:01:20', NULL, 50.99, NULL, '', true, ARRAY['p', NULL], NULL),
(1001, 2, '2024-01-01 00:03:04', 20, 57.85, -3.3930761381793193, NULL, true, ARRAY['p', NULL], '{"a": [2]}'),
(1002, 1, '2024-01-01 00:01:06', NULL, NULL, -2.658037011852029, 'Ä', NULL, ARRAY['q','r'], NULL),
(1003, 1, '2024-01-01 00:02:18', NULL, 22.22, NULL, 'Ä', true, NULL, NULL),
(1004, 2, '2024-01-01 00:01:18', 28, NULL, NULL, '', NULL, NULL, '{"a": [2]}'),
(1005, 1, '2024-01-01 00:03:02', 3, NULL, 3.4055636412126677, NULL, false, NULL, NULL),
(1006, 1, '2024-01-01 00:01:38', 26, -75.38, NULL, 'Ä', NULL, ARRAY['p', NULL], '{"a": [2]}'),
(1007, 1, '2024-01-01 00:00:40', NULL, NULL, NULL, NULL, true, ARRAY['p', NULL], NULL);
UPDATE t SET v = 19, k = 3 WHERE id = 65;
DELETE FROM t WHERE id = 3;
UPDATE t SET v = 26, k = 2 WHERE id = 66;
DELETE FROM t WHERE id = 97;
FLUSH;
INSERT INTO a VALUES (1, timestamp '2024-01-01' + INTERVAL '894 seconds', 1), (2, timestamp '2024-01-01' + INTERVAL '880 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '812 seconds', 5), (0, timestamp '2024-01-01' + INTERVAL '893 seconds', 4);
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '897 seconds', 2), (1, timestamp '2024-01-01' + INTERVAL '897 seconds', 4);
INSERT INTO b VALUES (2, timestamp '2024-01-01' + INTERVAL '1103 seconds', 3), (0, timestamp '2024-01-01' + INTERVAL '1086 seconds', 5), (1, timestamp '2024-01-01' + INTERVAL '1115 seconds', 5);
FLUSH;
INSERT INTO a VALUES (2, timestamp '2024-01-01' + INTERVAL '1094 seconds', 4), (1, timestamp '2024-01-01' + INTERVAL '1077 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '1152 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '1097 seconds', 3), (NULL, timestamp '2024-01-01' + INTERVAL '1154 seconds', 0);
INSERT INTO b VALUES (2, timestamp '2024-01-01' + INTERVAL '1161 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '1156 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '1102 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '1130 seconds', 0), (1, timestamp '2024-01-01' + INTERVAL '1159 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '1098 seconds', 3);
INSERT INTO a VALUES (2, timestamp '2024-01-01' + INTERVAL '1372 seconds', 1), (1, timestamp '2024-01-01' + INTERVAL '1383 seconds', 3), (2, timestamp '2024-01-01' + INTERVAL '1360 seconds', 3), (0, timestamp '2024-01-01' + INTERVAL '1359 seconds', 5), (1, timestamp '2024-01-01' + INTERVAL '1361 seconds', 4);
INSERT INTO names VALUES (3, 'three', 5), (NULL, 'none', 0);
FLUSH;
INSERT INTO a VALUES (1, timestamp '2024-01-01' + INTERVAL '20 seconds', 2);
INSERT INTO t VALUES
(1030, 3, '2024-01-01 00:01:39', 9, NULL, 2.952811680408212, NULL, false, NULL, '{"a": 1}'),
(1031, 2, '2024-01-01 00:00:41', NULL, -11.14, 4.882387390978723, 'Ä', true, ARRAY['p', NULL], '{"a": [2]}'),
(1032, 3, '2024-01-01 00:03:26', NULL, -35.38, NULL, NULL, false, NULL, '{"a": 1}'),
(1033, 1, '2024-01-01 00:00:25', NULL, NULL, NULL, '', true, ARRAY['q','r'], '{"a": 1}'),
(1034, 1, '2024-01-01 00:02:47', 16, -52.19, NULL, NULL, true, ARRAY['p', NULL], '{"a": 1}'),
(1035, 2, '2024-01-01 00:02:08', 26, 58.19, -4.466254516866453, NULL, NULL, ARRAY['q','r'], '{"a": [2]}'),
(1036, 2, '2024-01-01 00:01:39', 12, NULL, NULL, 'Ä', NULL, NULL, '{"a": 1}'),
(1037, 3, '2024-01-01 00:00:09', 7, NULL, 1.678964260086734, NULL, false, ARRAY['q','r'], '{"a": 1}');
UPDATE t SET v = 17, k = 3 WHERE id = 94;
DELETE FROM t WHERE id = 1004;
UPDATE t SET v = 9, k = 3 WHERE id = 68;
DELETE FROM t WHERE id = 1006;
FLUSH;
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '0 seconds', 5), (0, timestamp '2024-01-01' + INTERVAL '13 seconds', 1), (NULL, timestamp '2024-01-01' + INTERVAL '66 seconds', 5), (0, timestamp '2024-01-01' + INTERVAL '21 seconds', 2);
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '130 seconds', 3), (0, timestamp '2024-01-01' + INTERVAL '97 seconds', 5);
INSERT INTO b VALUES (2, timestamp '2024-01-01' + INTERVAL '95 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '83 seconds', 1), (1, timestamp '2024-01-01' + INTERVAL '85 seconds', 0), (1, timestamp '2024-01-01' + INTERVAL '132 seconds', 0), (2, timestamp '2024-01-01' + INTERVAL '83 seconds', 3), (NULL, timestamp '2024-01-01' + INTERVAL '96 seconds', 0);
DELETE FROM names WHERE k = 2;
FLUSH;
INSERT INTO b VALUES (2, timestamp '2024-01-01' + INTERVAL '277 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '254 seconds', 0), (1, timestamp '2024-01-01' + INTERVAL '250 seconds', 2), (0, timestamp '2024-01-01' + INTERVAL '245 seconds', 2), (0, timestamp '2024-01-01' + INTERVAL '336 seconds', 3);
INSERT INTO a VALUES (2, timestamp '2024-01-01' + INTERVAL '368 seconds', 4), (NULL, timestamp '2024-01-01' + INTERVAL '363 seconds', 2);
FLUSH;
INSERT INTO b VALUES (1, timestamp '2024-01-01' + INTERVAL '323 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '334 seconds', 5), (1, timestamp '2024-01-01' + INTERVAL '311 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '377 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '333 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '301 seconds', 4);
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '336 seconds', 4), (0, timestamp '2024-01-01' + INTERVAL '410 seconds', 0), (1, timestamp '2024-01-01' + INTERVAL '340 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '343 seconds', 2), (1, timestamp '2024-01-01' + INTERVAL '400 seconds', 4);
INSERT INTO t VALUES
(1060, NULL, '2024-01-01 00:02:28', NULL, NULL, -4.964919044159959, 'Ä', true, ARRAY['p', NULL], '{"a": [2]}'),
(1061, NULL, '2024-01-01 00:01:51', NULL, NULL, -3.715441200243305, 'x', true, ARRAY['p', NULL], '{"a": [2]}'),
(1062, 1, '2024-01-01 00:00:40', 4, NULL, -4.457350689764405, '7', true, NULL, '{"a": [2]}'),
(1063, 1, '2024-01-01 00:01:08', NULL, NULL, NULL, NULL, false, ARRAY['q','r'], '{"a": 1}'),
(1064, 2, '2024-01-01 00:02:57', NULL, NULL, -2.4583860112564326, '7', NULL, ARRAY['p', NULL], '{"a": [2]}'),
(1065, 2, '2024-01-01 00:02:23', 1, -40.33, -3.38770653034957, 'x', false, NULL, '{"a": 1}'),
(1066, 1, '2024-01-01 00:00:40', NULL, NULL, -2.479684055376455, 'x', false, ARRAY['p', NULL], '{"a": 1}'),
(1067, 2, '2024-01-01 00:02:21', 24, NULL, NULL, 'x', NULL, ARRAY['p', NULL], '{"a": 1}');
UPDATE t SET v = 20, k = 3 WHERE id = 1066;
DELETE FROM t WHERE id = 95;
UPDATE t SET v = 23, k = 1 WHERE id = 31;
DELETE FROM t WHERE id = 67;
FLUSH;
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '466 seconds', 2), (0, timestamp '2024-01-01' + INTERVAL '424 seconds', 2), (0, timestamp '2024-01-01' + INTERVAL '384 seconds', 0), (2, timestamp '2024-01-01' + INTERVAL '473 seconds', 4), (2, timestamp '2024-01-01' + INTERVAL '404 seconds', 3);
INSERT INTO b VALUES (NULL, timestamp '2024-01-01' + INTERVAL '524 seconds', 3);
FLUSH;
INSERT INTO a VALUES (NULL, timestamp '2024-01-01' + INTERVAL '539 seconds', 1), (1, timestamp '2024-01-01' + INTERVAL '529 seconds', 1), (NULL, timestamp '2024-01-01' + INTERVAL '590 seconds', 5), (1, timestamp '2024-01-01' + INTERVAL '517 seconds', 2), (0, timestamp '2024-01-01' + INTERVAL '506 seconds', 0);
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '540 seconds', 0), (1, timestamp '2024-01-01' + INTERVAL '605 seconds', 4), (1, timestamp '2024-01-01' + INTERVAL '605 seconds', 4), (NULL, timestamp '2024-01-01' + INTERVAL '551 seconds', 2);
INSERT INTO b VALUES (1, timestamp '2024-01-01' + INTERVAL '600 seconds', 3), (1, timestamp '2024-01-01' + INTERVAL '580 seconds', 2);
FLUSH;
INSERT INTO b VALUES (1, timestamp '2024-01-01' + INTERVAL '604 seconds', 1), (0, timestamp '2024-01-01' + INTERVAL '645 seconds', 0);
INSERT INTO a VALUES (1, timestamp '2024-01-01' + INTERVAL '720 seconds', 4);
INSERT INTO a VALUES (0, timestamp '2024-01-01' + INTERVAL '764 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '698 seconds', 1), (2, timestamp '2024-01-01' + INTERVAL '716 seconds', 0), (0, timestamp '2024-01-01' + INTERVAL '715 seconds', 2), (NULL, timestamp '2024-01-01' + INTERVAL '703 seconds', 1);
INSERT INTO t VALUES
(1090, 2, '2024-01-01 00:02:39', NULL, 36.87, NULL, 'Ä', true, ARRAY['q','r'], '{"a": [2]}'),
(1091, 1, '2024-01-01 00:00:03', NULL, NULL, NULL, 'Ä', NULL, ARRAY['p', NULL], '{"a": [2]}'),
(1092, 2, '2024-01-01 00:01:23', NULL, NULL, NULL, '7', false, NULL, NULL),
(1093, 2, '2024-01-01 00:02:25', NULL, NULL, 1.4494736359179523, '', NULL, ARRAY['q','r'], '{"a": 1}'),
(1094, NULL, '2024-01-01 00:01:10', 28, NULL, 0.31527400204727307, '7', true, NULL, NULL),
(1095, 1, '2024-01-01 00:00:39', 17, -53.38, -3.0048173279868005, '', true, ARRAY['q','r'], '{"a": 1}'),
(1096, 1, '2024-01-01 00:02:40', NULL, NULL, -1.2484125908887034, 'Ä', true, ARRAY['q','r'], '{"a": [2]}'),
(1097, NULL, '2024-01-01 00:01:14', NULL, NULL, -3.7673347193363274, NULL, false, ARRAY['q','r'], '{"a": [2]}');
UPDATE t SET v = 21, k = 2 WHERE id = 1091;
DELETE FROM t WHERE id = 1037;
UPDATE t SET v = 8, k = 2 WHERE id = 1090;
DELETE FROM t WHERE id = 66;
FLUSH;
