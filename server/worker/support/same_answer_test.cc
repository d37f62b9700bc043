// What of an answer has to be the same in another worker.
#include "server/worker/support/same_answer.h"

#include <gtest/gtest.h>

#include <vector>

#include "longwire/calls.h"

namespace longwire::worker {
namespace {

using Bytes = std::vector<std::byte>;

template <class Reply>
Bytes Encoded(const Reply& reply) {
  wire::Writer writer;
  reply.Encode(writer);
  return {writer.span().begin(), writer.span().end()};
}

calls::lwModuleLoad::Reply Loaded() {
  calls::lwModuleLoad::Reply reply;
  reply.functions = 3;
  reply.info_log = "compiled in 0.4 ms";
  reply.outputs.place = {2};
  reply.outputs.value = {7};
  return reply;
}

TEST(SameAnswerTest, WhatACompilerSaysMayDiffer) {
  auto other = Loaded();
  other.info_log = "compiled in 0.5 ms";
  other.error_log = "a warning";
  other.outputs.value = {8};
  EXPECT_TRUE(IsSameAnswer(CallId::lwModuleLoad, Encoded(Loaded()), Encoded(other)));
}

TEST(SameAnswerTest, AllElseMayNot) {
  auto other = Loaded();
  other.functions = 4;
  EXPECT_FALSE(IsSameAnswer(CallId::lwModuleLoad, Encoded(Loaded()), Encoded(other)));
  EXPECT_FALSE(IsSameAnswer(CallId::lwModuleLoad, Encoded(Loaded()), Bytes(3)));
  // Bytes that mean nothing here.
  EXPECT_TRUE(IsSameAnswer(CallId::cuTexObjectCreate, Bytes(8), Bytes(8)));
  EXPECT_FALSE(IsSameAnswer(CallId::cuTexObjectCreate, Bytes(8), Bytes(8, std::byte{1})));
}

}  // namespace
}  // namespace longwire::worker
