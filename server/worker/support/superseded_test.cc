// What a journal may leave out. The whole is tested by sessions that move (tests/e2e).
#include "server/worker/support/superseded.h"

#include <gtest/gtest.h>

#include "longwire/calls.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

constexpr uint64_t kStream = 100;

// A journal that is written down call by call.
class SupersededTest : public ::testing::Test {
 protected:
  template <class Call>
  uint64_t Add(const Call& call, uint64_t stream = 0, int32_t result = 0) {
    return AddWithReply(call, typename Call::Reply(), stream, result);
  }
  template <class Call>
  uint64_t AddWithReply(const Call& call, const typename Call::Reply& reply, uint64_t stream = 0,
                        int32_t result = 0) {
    JournalEntry& entry = entries_[next_];
    entry.call.position = next_;
    entry.call.call = Call::kId;
    entry.call.stream = stream;
    entry.call.flags = stream == 0 ? 0 : wire::kCapturing;
    entry.call.arguments.resize(call.EncodedBytes());
    wire::Writer writer(entry.call.arguments);
    call.Encode(writer);
    if constexpr (requires { reply.EncodedBytes(); }) {
      entry.reply.resize(reply.EncodedBytes());
      wire::Writer reply_writer(entry.reply);
      reply.Encode(reply_writer);
    }
    entry.answered = true;
    entry.result = result;
    return next_++;
  }
  // Destroys it at once.
  void Event(uint64_t id) {
    MakeEvent(id);
    EndEvent(id);
  }
  void MakeEvent(uint64_t id) {
    calls::lwEventCreate create;
    create.event = id;
    Add(create);
  }
  void EndEvent(uint64_t id) {
    calls::lwEventDestroy destroy;
    destroy.event = id;
    Add(destroy);
  }
  void BeginCapture(uint64_t stream = kStream) { Add(calls::lwCaptureBegin(), stream); }
  void EndCapture(uint64_t graph, uint64_t known_as = 0, uint64_t stream = kStream) {
    calls::lwCaptureEnd end;
    end.graph = graph;
    calls::lwCaptureEnd::Reply reply;
    reply.known_as = known_as;
    AddWithReply(end, reply, stream);
  }
  void Record(uint64_t event) {
    calls::lwEventRecord record;
    record.event = event;
    Add(record, kStream);
  }
  void Graph(uint64_t id) {
    BeginCapture();
    Add(calls::lwLaunch(), kStream);
    EndCapture(id);
  }
  void EndGraph(uint64_t id) {
    calls::lwGraphDestroy destroy;
    destroy.graph = id;
    Add(destroy);
  }
  void Instantiate(uint64_t graph, uint64_t exec) {
    calls::lwGraphInstantiate instantiate;
    instantiate.graph = graph;
    instantiate.exec = exec;
    Add(instantiate);
  }
  void EndExec(uint64_t exec) {
    calls::lwGraphExecDestroy destroy;
    destroy.exec = exec;
    Add(destroy);
  }
  void Update(uint64_t exec, uint64_t graph, int32_t code = 0) {
    calls::lwGraphExecUpdate update;
    update.exec = exec;
    update.graph = graph;
    calls::lwGraphExecUpdate::Reply reply;
    reply.code = code;
    AddWithReply(update, reply);
  }
  void Set(uint64_t exec, uint64_t node, int32_t result = 0) {
    calls::lwGraphSetKernel set;
    set.exec = exec;
    set.node = node;
    Add(set, 0, result);
  }
  void Switch(uint64_t exec, uint64_t node) {
    calls::cuGraphNodeSetEnabled enable;
    enable.hGraphExec = exec;
    enable.hNode = node;
    Add(enable);
  }
  size_t Left(uint64_t first = 0) { return entries_.size() - Superseded(entries_, first).size(); }
  std::vector<uint64_t> Dropped() { return Superseded(entries_, 0); }

  std::map<uint64_t, JournalEntry> entries_;
  uint64_t next_ = 1;
};

using Positions = std::vector<uint64_t>;

TEST_F(SupersededTest, EventsThatAreGone) {
  MakeEvent(7);
  for (uint64_t id = 10; id < 1000; ++id) Event(id);
  EXPECT_EQ(Left(), 1u);
}

TEST_F(SupersededTest, CodeIsLoadedMeanwhile) {
  MakeEvent(7);
  Add(calls::lwModuleLoad());
  EndEvent(7);
  EXPECT_EQ(Dropped(), (Positions{1, 3}));
}

TEST_F(SupersededTest, WhatAnUnknownCallMayHaveUsedStays) {
  MakeEvent(7);
  Event(8);
  Add(calls::cuGraphCreate());
  EndEvent(7);
  EXPECT_EQ(Dropped(), (Positions{2, 3}));
}

TEST_F(SupersededTest, ACallWithoutAnAnswerIsTheEnd) {
  Event(7);
  Add(calls::lwModuleLoad());
  entries_[3].answered = false;
  Event(8);
  EXPECT_EQ(Dropped(), (Positions{1, 2}));
}

TEST_F(SupersededTest, WhatAMoveHasTakenStays) {
  Event(7);
  MakeEvent(8);
  EndEvent(8);
  EXPECT_EQ(Superseded(entries_, 3), (Positions{3, 4}));
  EXPECT_EQ(Superseded(entries_, 4), Positions());
}

TEST_F(SupersededTest, GraphsThatAreGone) {
  for (uint64_t i = 10; i < 100; ++i) {
    Graph(i);
    Instantiate(i, 1000 + i);
    EndGraph(i);
    EndExec(1000 + i);
  }
  EXPECT_EQ(Left(), 0u);
}

TEST_F(SupersededTest, AGraphWhoseExecutableIsThereStays) {
  Graph(10);
  Instantiate(10, 11);
  EndGraph(10);
  EXPECT_EQ(Left(), 5u);
}

TEST_F(SupersededTest, OnlyTheLastUpdateCounts) {
  Graph(10);
  Instantiate(10, 11);
  for (uint64_t i = 20; i < 100; ++i) {
    Graph(i);
    Update(11, i);
    EndGraph(i);
  }
  EXPECT_EQ(Left(), 4u + 5u);
}

TEST_F(SupersededTest, AnUpdateThatFailedIsNone) {
  Graph(10);
  Instantiate(10, 11);
  Graph(20);
  Update(11, 20);
  EndGraph(20);
  Graph(30);
  Update(11, 30, 910);
  EndGraph(30);
  EXPECT_EQ(Dropped(), Positions());
}

TEST_F(SupersededTest, OfChangesOfANodeTheLastOneCounts) {
  Graph(10);
  Instantiate(10, 11);
  for (int i = 0; i < 50; ++i) {
    Set(11, 1);
    Set(11, 2);
    Switch(11, 2);
  }
  EXPECT_EQ(Left(), 4u + 3u);
  Set(11, 1, 1);
  EXPECT_EQ(Left(), 4u + 4u) << "one that was refused is refused again, and changes nothing";
  Update(11, 10);
  EXPECT_EQ(Left(), 4u + 3u) << "the refused one, the switch and the update";
}

TEST_F(SupersededTest, WhatACaptureUsesStaysWithIt) {
  MakeEvent(7);
  BeginCapture();
  Record(7);
  EndCapture(10);
  EndEvent(7);
  EXPECT_EQ(Left(), 5u);
  EndGraph(10);
  EXPECT_EQ(Left(), 0u);
}

TEST_F(SupersededTest, CapturesThatAreNotPlainStay) {
  BeginCapture();
  EndCapture(10, /*known_as=*/50);  // its nodes have numbers
  EndGraph(10);
  BeginCapture();
  BeginCapture(kStream + 1);  // two at a time
  EndCapture(20);
  EndCapture(30, 0, kStream + 1);
  EndGraph(20);
  EndGraph(30);
  BeginCapture();
  Add(calls::lwCaptureInfo(), kStream);  // numbers for nodes
  EndCapture(40);
  EndGraph(40);
  BeginCapture();
  Add(calls::lwAllocAsync(), kStream);  // an address that the driver chooses
  EndCapture(60);
  EndGraph(60);
  EXPECT_EQ(Dropped(), Positions());
}

TEST_F(SupersededTest, StreamsThatAreGone) {
  calls::lwStreamCreate create;
  create.stream = kStream;
  Add(create);
  Graph(10);
  calls::lwStreamDestroy destroy;
  destroy.stream = kStream;
  Add(destroy);
  EXPECT_EQ(Dropped(), Positions()) << "the graph was captured in it";
  EndGraph(10);
  EXPECT_EQ(Left(), 0u);
}

}  // namespace
}  // namespace longwire::worker
