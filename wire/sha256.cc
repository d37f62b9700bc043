#include "wire/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace longwire::wire {
namespace {

constexpr size_t kBlockBytes = 64;

constexpr uint32_t kInitialState[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

alignas(16) constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t BigEndian(const std::byte* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return __builtin_bswap32(word);
}

void AddBlockPlainly(uint32_t* state, const std::byte* block) {
  uint32_t words[64];
  for (int i = 0; i < 16; ++i) words[i] = BigEndian(block + 4 * i);
  for (int i = 16; i < 64; ++i) {
    uint32_t early = words[i - 15], late = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] +
               (std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3)) +
               (std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10));
  }
  uint32_t values[8];
  std::memcpy(values, state, sizeof(values));
#pragma GCC unroll 64
  for (int i = 0; i < 64; ++i) {
    // The eight turn by one place in each round; names turn instead of values.
    auto v = [&](int name) -> uint32_t& { return values[(name - i) & 7]; };
    uint32_t choice = (v(4) & v(5)) ^ (~v(4) & v(6));
    uint32_t majority = (v(0) & v(1)) ^ (v(0) & v(2)) ^ (v(1) & v(2));
    uint32_t one = v(7) + (std::rotr(v(4), 6) ^ std::rotr(v(4), 11) ^ std::rotr(v(4), 25)) +
                   choice + kRoundConstants[i] + words[i];
    uint32_t two = (std::rotr(v(0), 2) ^ std::rotr(v(0), 13) ^ std::rotr(v(0), 22)) + majority;
    v(3) += one;
    v(7) = one + two;
  }
  for (int i = 0; i < 8; ++i) state[i] += values[i];
}

#if defined(__x86_64__)
bool HasInstructions() {
  static const bool has = [] {
    unsigned a = 1, b = 0, c = 0, d = 0;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    bool ssse3_and_sse41 = (c & (1u << 9)) != 0 && (c & (1u << 19)) != 0;
    a = 7, c = 0;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return ssse3_and_sse41 && (b & (1u << 29)) != 0;
  }();
  return has;
}

// The instructions keep the state as the pairs ABEF and CDGH and make two rounds each; four vectors
// hold the 16 words of the schedule that the next rounds are made from.
__attribute__((target("sha,ssse3,sse4.1"))) void AddBlocksByInstructions(uint32_t* state,
                                                                         const std::byte* blocks,
                                                                         size_t count) {
  const __m128i reverse = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* stored = reinterpret_cast<__m128i*>(state);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(stored), 0xb1);       // CDAB
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(stored + 1), 0x1b);  // EFGH
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xf0);
  for (; count > 0; --count, blocks += kBlockBytes) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i words[4];
    for (int i = 0; i < 4; ++i) {
      auto* from = reinterpret_cast<const __m128i*>(blocks) + i;
      words[i] = _mm_shuffle_epi8(_mm_loadu_si128(from), reverse);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      __m128i& now = words[i % 4];
      if (i >= 4) {
        const __m128i& newest = words[(i + 3) % 4];
        __m128i middle = _mm_alignr_epi8(newest, words[(i + 2) % 4], 4);
        __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, words[(i + 1) % 4]), middle);
        now = _mm_sha256msg2_epu32(sum, newest);
      }
      auto* constants = reinterpret_cast<const __m128i*>(kRoundConstants) + i;
      __m128i added = _mm_add_epi32(now, _mm_load_si128(constants));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  low = _mm_shuffle_epi32(abef, 0x1b);   // FEBA
  high = _mm_shuffle_epi32(cdgh, 0xb1);  // DCHG
  _mm_storeu_si128(stored, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128(stored + 1, _mm_alignr_epi8(high, low, 8));
}
#else
bool HasInstructions() { return false; }
void AddBlocksByInstructions(uint32_t*, const std::byte*, size_t) {}
#endif

}  // namespace

Sha256::Sha256(Code code) : plain_(code == Code::kPlain || !HasInstructions()) {
  std::memcpy(state_, kInitialState, sizeof(state_));
}

void Sha256::AddBlocks(const std::byte* blocks, size_t count) {
  if (!plain_) return AddBlocksByInstructions(state_, blocks, count);
  for (; count > 0; --count, blocks += kBlockBytes) AddBlockPlainly(state_, blocks);
}

void Sha256::Add(std::span<const std::byte> bytes) {
  size_t kept = bytes_ % kBlockBytes;
  bytes_ += bytes.size();
  if (kept != 0) {
    size_t taken = std::min(bytes.size(), kBlockBytes - kept);
    std::copy_n(bytes.data(), taken, rest_ + kept);
    bytes = bytes.subspan(taken);
    if (kept + taken < kBlockBytes) return;
    AddBlocks(rest_, 1);
  }
  size_t whole = bytes.size() / kBlockBytes;
  AddBlocks(bytes.data(), whole);
  bytes = bytes.subspan(whole * kBlockBytes);
  std::copy_n(bytes.data(), bytes.size(), rest_);
}

Digest Sha256::Finish() {
  uint64_t bits = __builtin_bswap64(bytes_ * 8);
  constexpr std::byte kEnd[kBlockBytes + 8] = {std::byte{0x80}};
  size_t kept = bytes_ % kBlockBytes;
  Add(std::span(kEnd).first(kept < 56 ? 56 - kept : 120 - kept));
  Add(std::as_bytes(std::span(&bits, 1)));
  Digest digest;
  for (int i = 0; i < 8; ++i) {
    uint32_t word = __builtin_bswap32(state_[i]);
    std::memcpy(digest.data() + 4 * i, &word, sizeof(word));
  }
  return digest;
}

Digest Sha256Of(std::span<const std::byte> bytes) {
  Sha256 sum;
  sum.Add(bytes);
  return sum.Finish();
}

std::string Hexadecimal(const Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::byte byte : digest) {
    text += kDigits[std::to_integer<int>(byte >> 4)];
    text += kDigits[std::to_integer<int>(byte & std::byte{15})];
  }
  return text;
}

bool ParseHexadecimal(const std::string& text, Digest* digest) {
  if (text.size() != 2 * digest->size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    char digit = text[i];
    bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && (digit < 'a' || digit > 'f')) return false;
    auto value = static_cast<std::byte>(decimal ? digit - '0' : digit - 'a' + 10);
    std::byte& byte = (*digest)[i / 2];
    byte = i % 2 == 0 ? value << 4 : byte | value;
  }
  return true;
}

}  // namespace longwire::wire
