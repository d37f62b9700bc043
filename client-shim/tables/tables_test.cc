#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "client-shim/context/current_context.h"
#include "client-shim/tables/context_storage.h"
#include "client-shim/tables/integrity.h"
#include "client-shim/tables/md2.h"

namespace longwire::shim {

// What the storage asks of the shim, under the test's control.
namespace {
thread_local CUcontext current = nullptr;
}  // namespace
CUcontext CurrentContext() { return current; }

namespace {

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string Hex(const Md2::Digest& digest) {
  std::string text;
  for (uint8_t byte : digest) {
    char two[3];
    snprintf(two, sizeof(two), "%02x", byte);
    text += two;
  }
  return text;
}

std::string Md2Of(const std::string& text) {
  Md2 md2;
  md2.Update(Bytes(text));
  return Hex(md2.Finish());
}

// RFC 1319, appendix A.5.
TEST(Md2, GivesTheVectorsOfTheRfc) {
  EXPECT_EQ(Md2Of(""), "8350e5a3e24c153df2275c9f80692773");
  EXPECT_EQ(Md2Of("a"), "32ec01ec4a6dac72c0ab96fb34c0b5d1");
  EXPECT_EQ(Md2Of("message digest"), "ab4f496bfb2a530b219ff33031fe06b0");
  EXPECT_EQ(Md2Of("1234567890123456789012345678901234567890123456789012345678901234567890123456"
                  "7890"),
            "d5976f79d83d3a0dc9806c3c66f3efd8");
}

TEST(Md2, HmacDependsOnKeyAndMessage) {
  Md2::Digest key{};
  Md2::Digest other = key;
  other[15] = 1;
  EXPECT_NE(HmacMd2(key, Bytes("x")), HmacMd2(other, Bytes("x")));
  EXPECT_NE(HmacMd2(key, Bytes("x")), HmacMd2(key, Bytes("y")));
}

TEST(Integrity, LastRoundCoversEveryInput) {
  IntegrityInputs inputs{13000, 13002, 1, 2, 3, 4, 5, 6};
  IntegrityDevice device{};
  uint64_t reference[2], changed[2];
  AnswerIntegrityCheck(inputs, {&device, 1}, reference);
  for (size_t byte = 0; byte < sizeof(inputs); ++byte) {
    if (byte >= 4 && byte < 8) continue;  // the version also chooses the round
    IntegrityInputs other = inputs;
    reinterpret_cast<uint8_t*>(&other)[byte] ^= 1;
    AnswerIntegrityCheck(other, {&device, 1}, changed);
    EXPECT_NE(std::memcmp(reference, changed, sizeof(changed)), 0) << byte;
  }
  AnswerIntegrityCheck(inputs, {}, changed);
  EXPECT_NE(std::memcmp(reference, changed, sizeof(changed)), 0);
}

CUcontext Context(uintptr_t value) { return reinterpret_cast<CUcontext>(value); }

TEST(ContextStorage, KeepsAValuePerContextAndKey) {
  int key = 0, other_key = 0, value = 0;
  void* got = nullptr;
  current = nullptr;
  EXPECT_EQ(GetContextStorage(&got, nullptr, &key), CUDA_ERROR_INVALID_CONTEXT);
  current = Context(0x100);
  EXPECT_NE(GetContextStorage(&got, nullptr, &key), CUDA_SUCCESS) << "a miss first";
  ASSERT_EQ(PutContextStorage(nullptr, &key, &value, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(GetContextStorage(&got, Context(0x100), &key), CUDA_SUCCESS);
  EXPECT_EQ(got, &value);
  ASSERT_EQ(GetContextStorage(&got, reinterpret_cast<CUcontext>(-1), &key), CUDA_SUCCESS);
  EXPECT_NE(GetContextStorage(&got, nullptr, &other_key), CUDA_SUCCESS);
  EXPECT_NE(GetContextStorage(&got, Context(0x200), &key), CUDA_SUCCESS);
  ASSERT_EQ(DeleteContextStorage(nullptr, &key), CUDA_SUCCESS);
  EXPECT_NE(GetContextStorage(&got, nullptr, &key), CUDA_SUCCESS) << "the kept answer is stale";
}

int destroyed = 0;
void CountDestruction(CUcontext, void*, void* value) { destroyed += *static_cast<int*>(value); }

TEST(ContextStorage, RunsDestructorsOfADyingContextOnly) {
  int keys[3], value = 1;
  destroyed = 0;
  PutContextStorage(Context(0x300), &keys[0], &value, &CountDestruction);
  PutContextStorage(Context(0x300), &keys[1], &value, &CountDestruction);
  PutContextStorage(Context(0x301), &keys[2], &value, &CountDestruction);
  DropContextStorage(Context(0x300));
  EXPECT_EQ(destroyed, 2);
  DropContextStorage(Context(0x300));
  EXPECT_EQ(destroyed, 2);
  void* got = nullptr;
  EXPECT_EQ(GetContextStorage(&got, Context(0x301), &keys[2]), CUDA_SUCCESS);
}

TEST(ContextStorage, ManyThreadsSeeTheirOwnContextsValues) {
  int key = 0;
  auto work = [&key](uintptr_t number) {
    int value = 0;
    current = Context(0x1000 + number);
    for (int i = 0; i < 2000; ++i) {
      PutContextStorage(nullptr, &key, &value, nullptr);
      void* got = nullptr;
      ASSERT_EQ(GetContextStorage(&got, nullptr, &key), CUDA_SUCCESS);
      ASSERT_EQ(got, &value);
    }
  };
  std::thread one(work, 1), two(work, 2);
  one.join();
  two.join();
}

}  // namespace
}  // namespace longwire::shim
