// Content goes from one end of a move's stream to the other as it is, however it is cut, and as any
// program that speaks protobuf would say it.
#include "server/daemon/moving/step_stream.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "proto/transport.pb.h"
#include "tests/transport/fake_stream.h"

namespace longwire::daemon {
namespace {

using std::chrono::seconds;
using transport::FakeStream;
using transport::HandOverStep;

constexpr seconds kPatience{20};

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Text(const StepMessage& message) {
  std::string text;
  for (std::span<const std::byte> part : message.parts) text += Text(part);
  return text;
}

std::string Bytes(size_t size) {
  std::string bytes(size, 0);
  std::iota(bytes.begin(), bytes.end(), static_cast<char>(size));
  return bytes;
}

ContentStep Filled(const std::string& bytes) {
  ContentStep step;
  for (std::string_view left = bytes; !left.empty();) {
    const auto part = left.substr(0, std::min(left.size(), left.size() / 2 + 1));
    std::memcpy(step.room().data(), part.data(), part.size());
    step.Filled(part.size());
    left.remove_prefix(part.size());
  }
  return step;
}

// Lengths at which their own length in the message changes, and the largest.
constexpr size_t kSizes[] = {1, 127, 128, 16383, 16384, kStepBytes};

TEST(StepContentTest, IsAMessage) {
  for (size_t size : kSizes) {
    ContentStep step = Filled(Bytes(size));
    EXPECT_EQ(step.room().size(), kStepBytes - size);
    HandOverStep read;
    ASSERT_TRUE(read.ParseFromString(Text(step.Message())));
    EXPECT_EQ(read.content(), Bytes(size));
  }
}

TEST(StepContentTest, IsFoundInPartsOfAnySize) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{127}, size_t{300}, size_t{20000}}) {
    HandOverStep step;
    step.set_content(Bytes(size));
    const std::string text = step.SerializeAsString();
    for (size_t part : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, text.size()}) {
      StepMessage message;
      for (size_t at = 0; at < text.size(); at += part) {
        const auto bytes = std::as_bytes(std::span(text)).subspan(at);
        message.parts.push_back(bytes.first(std::min(part, bytes.size())));
      }
      ASSERT_TRUE(LeaveContent(&message)) << size << " in parts of " << part;
      EXPECT_EQ(Text(message), Bytes(size));
    }
  }
}

TEST(StepContentTest, WhatIsOtherwiseStaysAsItIs) {
  HandOverStep rings, content;
  rings.set_ring_bytes("content");
  content.set_content("content");
  const std::string good = content.SerializeAsString();
  for (const std::string& text :
       {rings.SerializeAsString(), good + good, good + "x", good.substr(0, good.size() - 1),
        std::string("\x12"), std::string("\x12\xff\xff\xff\xff\xff\xff"), std::string()}) {
    StepMessage message{nullptr, {std::as_bytes(std::span(text))}};
    EXPECT_FALSE(LeaveContent(&message));
    EXPECT_EQ(Text(message), text);
  }
}

class StepStreamTest : public ::testing::Test {
 protected:
  StepStreamTest() {
    auto one = std::make_shared<FakeStream>(), other = std::make_shared<FakeStream>();
    FakeStream::Join(*one, *other);
    here_.emplace(one);
    there_.emplace(other);
  }

  std::optional<StepStream> here_, there_;
  std::string sentence_;
};

TEST_F(StepStreamTest, ContentsAndOtherStepsComeInTheirOrder) {
  constexpr size_t kRounds = 30;  // more than either end holds
  std::thread sender([&] {
    std::string problem;
    for (size_t i = 0; i < kRounds; ++i) {
      HandOverStep step;
      step.set_ring_bytes(Bytes(i));
      EXPECT_TRUE(here_->Queue(Filled(Bytes(1000 * i + 1)), kPatience, &problem)) << problem;
      EXPECT_TRUE(here_->Queue(step, kPatience, &problem)) << problem;
    }
  });
  StepMessage content, before;
  HandOverStep step;
  bool is_content = false;
  for (size_t i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(there_->Receive(&step, &content, &is_content, kPatience, &sentence_)) << sentence_;
    ASSERT_TRUE(is_content);
    EXPECT_EQ(Text(content), Bytes(1000 * i + 1));
    std::swap(before, content);
    ASSERT_TRUE(there_->Receive(&step, &content, &is_content, kPatience, &sentence_)) << sentence_;
    ASSERT_FALSE(is_content);
    EXPECT_EQ(step.ring_bytes(), Bytes(i));
    EXPECT_EQ(Text(before), Bytes(1000 * i + 1));  // still there
  }
  sender.join();
}

TEST_F(StepStreamTest, AnEndThatBreaksIsSaid) {
  here_.reset();
  StepMessage content;
  HandOverStep step;
  bool is_content = false;
  EXPECT_FALSE(there_->Receive(&step, &content, &is_content, kPatience, &sentence_));
  EXPECT_EQ(sentence_, "the connection between the servers broke");
}

}  // namespace
}  // namespace longwire::daemon
