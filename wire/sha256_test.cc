#include "wire/sha256.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace longwire::wire {
namespace {

std::string Of(std::string_view text, Sha256::Code code) {
  Sha256 sum(code);
  sum.Add(std::as_bytes(std::span(text)));
  return Hexadecimal(sum.Finish());
}

class Sha256Test : public testing::TestWithParam<Sha256::Code> {};
INSTANTIATE_TEST_SUITE_P(Codes, Sha256Test,
                         testing::Values(Sha256::Code::kBest, Sha256::Code::kPlain));

// NIST's examples for FIPS 180-4.
TEST_P(Sha256Test, KnownAnswers) {
  EXPECT_EQ(Of("", GetParam()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Of("abc", GetParam()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", GetParam()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Of(std::string(1'000'000, 'a'), GetParam()),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Every way to fill the last block, in every way to cut the bytes.
TEST(Sha256AgreementTest, BothCodesAgreeHoweverTheBytesAreCut) {
  std::vector<std::byte> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::span<const std::byte> all = std::span(bytes).first(size);
    Sha256 plain(Sha256::Code::kPlain), cut;
    plain.Add(all);
    for (size_t at = 0, step = size % 67 + 1; at < size; at += step) {
      cut.Add(all.subspan(at, std::min(step, size - at)));
    }
    EXPECT_EQ(plain.Finish(), cut.Finish()) << size;
  }
}

TEST(Sha256TextTest, DigitsThereAndBack) {
  Digest digest = Sha256Of({});
  Digest back{};
  EXPECT_TRUE(ParseHexadecimal(Hexadecimal(digest), &back));
  EXPECT_EQ(digest, back);
  for (const char* wrong : {"", "e3b0",
                            "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B78"
                            "52B855"}) {
    EXPECT_FALSE(ParseHexadecimal(wrong, &back));
  }
}

}  // namespace
}  // namespace longwire::wire
