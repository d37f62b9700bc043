/* Operations of every kind on a thread's numbers. A is 1 and more, B any; both are only known when
 * they run. SET(n, value) keeps one. */
#define OPERATIONS(A, B)                                                            \
  SET(0, A + B)                                                                     \
  SET(1, A - B)                                                                     \
  SET(2, A* B)                                                                      \
  SET(3, B / A)                                                                     \
  SET(4, B % A)                                                                     \
  SET(5, A | B)                                                                     \
  SET(6, A& B)                                                                      \
  SET(7, A ^ B)                                                                     \
  SET(8, A << (B & 63))                                                             \
  SET(9, (B * 0x9e3779b97f4a7c15) >> (A & 63))                                      \
  SET(10, (uint64_t)((int64_t)(B * 0x9e3779b97f4a7c15) >> (A & 63)))                \
  SET(11, -B)                                                                       \
  SET(12, ~B)                                                                       \
  SET(13, A > B ? 1 : 2)                                                            \
  SET(14, (int64_t)(A - 40) < (int64_t)B ? 3 : 4)                                   \
  SET(15, A - 40 >= B ? 5 : 6)                                                      \
  SET(16, (int64_t)(A - 40) >= -3 ? 7 : 8)                                          \
  SET(17, B == 7 ? A : A + 100)                                                     \
  SET(18, (B & 3) != 0 ? A * 3 : A * 5)                                             \
  SET(19, (uint64_t)(uint8_t)(B * 77 + A) + ((uint64_t)(uint16_t)(B * 7777) << 20)) \
  SET(20, B / 10 + B % 10)                                                          \
  SET(21, (uint64_t)((int64_t)(int8_t)(B * 3 + A)))                                 \
  SET(22, A + 0x123456789abcdef0)                                                   \
  SET(23, (int64_t)(A - 40) <= (int64_t)(B - 9) && A <= 60 ? 9 : 10)
#define OPERATION_COUNT 24
