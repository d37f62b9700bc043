#include "server/worker/support/superseded.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "longwire/calls.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

using Entry = JournalEntry;
using Positions = std::vector<uint64_t>;

template <class Call>
Call Decoded(const Entry& entry) {
  Call call;
  wire::Reader reader(entry.call.arguments);
  if (call.Decode(reader) != wire::WireResult::kOk) return {};
  return call;
}
template <class Reply>
Reply DecodedReply(const Entry& entry) {
  Reply reply;
  wire::Reader reader(entry.reply);
  if (reply.Decode(reader) != wire::WireResult::kOk) return {};
  return reply;
}

// What is known of an object.
struct Object {
  Positions own;  // of calls that go with it: it is made, changed and destroyed
  uint64_t made = 0;
  bool gone = false;    // destroyed, and nothing can have used it that is not known here
  Positions mentioned;  // by calls that go with other objects
};
using Objects = std::unordered_map<uint64_t, Object>;

// A change of an executable.
struct Change {
  uint64_t position = 0;
  CallId call{};
  uint64_t node = 0;
};

// An update of the whole executable gives its nodes other parameters, but does not switch them.
bool OutlivesUpdates(const Change& change) { return change.call == CallId::cuGraphNodeSetEnabled; }

// The executable and the node of a change.
template <class Call>
std::pair<uint64_t, uint64_t> TargetOf(const Call& call) {
  return {call.exec, call.node};
}
std::pair<uint64_t, uint64_t> TargetOf(const calls::cuGraphNodeSetEnabled& call) {
  return {call.hGraphExec, call.hNode};
}
std::pair<uint64_t, uint64_t> TargetOf(const calls::cuGraphExecMemsetNodeSetParams& call) {
  return {call.hGraphExec, call.hNode};
}

// A capture that is open or has ended.
struct Capture {
  uint64_t stream = 0;
  Positions own;
  bool plain = true;
};

class Search {
 public:
  void Take(uint64_t position, const Entry& entry) {
    position_ = position;
    if ((entry.call.flags & wire::kCapturing) != 0 && entry.call.stream != 0) {
      return TakeCaptured(entry);
    }
    if (entry.result != 0) return TakeOther(entry);  // it is refused again
    switch (entry.call.call) {
      case CallId::lwEventCreate:
        return Made(events_, Decoded<calls::lwEventCreate>(entry).event, {position});
      case CallId::lwEventDestroy:
        return Gone(events_, Decoded<calls::lwEventDestroy>(entry).event);
      case CallId::lwStreamCreate:
        return Made(streams_, Decoded<calls::lwStreamCreate>(entry).stream, {position});
      case CallId::lwStreamDestroy:
        return Gone(streams_, Decoded<calls::lwStreamDestroy>(entry).stream);
      case CallId::lwGraphDestroy:
        return Gone(graphs_, Decoded<calls::lwGraphDestroy>(entry).graph);
      case CallId::lwGraphExecDestroy:
        return Gone(execs_, Decoded<calls::lwGraphExecDestroy>(entry).exec);
      case CallId::lwGraphInstantiate:
        return TakeInstantiate(entry);
      case CallId::lwGraphExecUpdate:
        return TakeUpdate(entry);
      case CallId::lwGraphSetKernel:
        return TakeChange<calls::lwGraphSetKernel>(entry);
      case CallId::lwGraphSetMemcpy:
        return TakeChange<calls::lwGraphSetMemcpy>(entry);
      case CallId::lwGraphSetHost:
        return TakeChange<calls::lwGraphSetHost>(entry);
      case CallId::cuGraphExecMemsetNodeSetParams:
        return TakeChange<calls::cuGraphExecMemsetNodeSetParams>(entry);
      case CallId::cuGraphNodeSetEnabled:
        return TakeChange<calls::cuGraphNodeSetEnabled>(entry);
      case CallId::lwGraphSetChild:
        Mention(graphs_, Decoded<calls::lwGraphSetChild>(entry).child);
        return TakeChange<calls::lwGraphSetChild>(entry);
      default:
        TakeOther(entry);
    }
  }

  Positions Found() {
    for (auto& [id, exec] : execs_) {
      if (exec.gone) Drop(exec.own);
    }
    DropReplaced();
    for (auto& [id, graph] : graphs_) DropUnused(graph);
    for (auto& [id, event] : events_) DropUnused(event);
    for (auto& [id, stream] : streams_) DropUnused(stream);
    return {dropped_.begin(), dropped_.end()};
  }

 private:
  void Made(Objects& objects, uint64_t id, Positions by) { objects[id] = {by, position_}; }
  // One that was made before all this stays as it is.
  void Gone(Objects& objects, uint64_t id) {
    auto found = objects.find(id);
    if (found == objects.end()) return;
    found->second.own.push_back(position_);
    found->second.gone = last_other_ < found->second.made;
  }
  void Mention(Objects& objects, uint64_t id) {
    auto found = objects.find(id);
    if (found != objects.end()) found->second.mentioned.push_back(position_);
  }

  void TakeInstantiate(const Entry& entry) {
    const auto call = Decoded<calls::lwGraphInstantiate>(entry);
    const auto reply = DecodedReply<calls::lwGraphInstantiate::Reply>(entry);
    Mention(graphs_, call.graph);
    if (reply.code != 0 || !reply.memory.left.empty() || !reply.memory.freed.empty()) {
      return TakeOther(entry);
    }
    Made(execs_, call.exec, {position_});
  }
  void TakeUpdate(const Entry& entry) {
    const auto call = Decoded<calls::lwGraphExecUpdate>(entry);
    const auto reply = DecodedReply<calls::lwGraphExecUpdate::Reply>(entry);
    Mention(graphs_, call.graph);
    auto found = execs_.find(call.exec);
    if (found == execs_.end() || !reply.memory.left.empty() || !reply.memory.freed.empty()) {
      return TakeOther(entry);
    }
    found->second.own.push_back(position_);
    if (reply.code == 0) changes_[call.exec].push_back({position_, entry.call.call, 0});
  }
  template <class Call>
  void TakeChange(const Entry& entry) {
    const auto [exec, node] = TargetOf(Decoded<Call>(entry));
    auto found = execs_.find(exec);
    if (exec == 0 || found == execs_.end()) return TakeOther(entry);
    found->second.own.push_back(position_);
    changes_[exec].push_back({position_, entry.call.call, node});
  }

  // Part of a capture, of which only plain ones go: no other is open meanwhile, and what is
  // captured leaves nothing but nodes.
  void TakeCaptured(const Entry& entry) {
    if (entry.call.call == CallId::lwCaptureBegin) {
      const bool plain =
          open_.empty() && entry.result == 0 && Decoded<calls::lwCaptureBegin>(entry).graph == 0;
      for (Capture& capture : open_) capture.plain = false;
      if (!plain) TakeOther(entry);
      open_.push_back({entry.call.stream, {position_}, plain});
      return;
    }
    const bool ends = entry.call.call == CallId::lwCaptureEnd;
    if (open_.empty()) return TakeOther(entry);
    for (Capture& capture : open_) {
      capture.plain &= entry.result == 0 && (ends || LeavesNothing(entry.call.call));
      capture.own.push_back(position_);
    }
    MentionObjects(entry);
    if (ends) EndCapture(entry);
  }
  void MentionObjects(const Entry& entry) {
    Mention(streams_, entry.call.stream);
    if (entry.call.call == CallId::lwEventRecord) {
      Mention(events_, Decoded<calls::lwEventRecord>(entry).event);
    }
    if (entry.call.call == CallId::lwStreamWaitEvent) {
      Mention(events_, Decoded<calls::lwStreamWaitEvent>(entry).event);
    }
  }
  void EndCapture(const Entry& entry) {
    auto found = std::ranges::find(open_, entry.call.stream, &Capture::stream);
    if (found == open_.end()) return TakeOther(entry);
    const uint64_t graph = Decoded<calls::lwCaptureEnd>(entry).graph;
    const auto reply = DecodedReply<calls::lwCaptureEnd::Reply>(entry);
    if (found->plain && graph != 0 && reply.known_as == 0) Made(graphs_, graph, found->own);
    open_.erase(found);
  }

  // Whatever is there may be used by it. Loading and unloading of code uses none of it.
  void TakeOther(const Entry& entry) {
    switch (entry.call.call) {
      case CallId::lwModuleLoad:
      case CallId::lwModuleUnload:
      case CallId::lwModuleFunctions:
      case CallId::lwModuleGlobal:
      case CallId::lwFunctionAttributes:
      case CallId::lwFunctionSetAttribute:
        return;
      default:
        break;
    }
    last_other_ = position_;
    for (Capture& capture : open_) capture.plain = false;
  }

  void Drop(const Positions& positions) { dropped_.insert(positions.begin(), positions.end()); }
  void DropUnused(const Object& object) {
    const auto is_dropped = [&](uint64_t position) { return dropped_.contains(position); };
    if (object.gone && std::ranges::all_of(object.mentioned, is_dropped)) Drop(object.own);
  }
  // Of each executable that is there: what was changed before the last update as a whole, and all
  // changes of a node by one call but the last.
  void DropReplaced() {
    for (auto& [id, changes] : changes_) {
      std::set<std::pair<CallId, uint64_t>> replaced;
      bool whole = false;
      for (size_t i = changes.size(); i-- > 0;) {
        const Change& change = changes[i];
        // Which memory of the worker a copy shares may hang on the copies that were there before.
        const bool first = replaced.insert({change.call, change.node}).second ||
                           change.call == CallId::lwGraphSetMemcpy;
        if (!first || (whole && !OutlivesUpdates(change))) dropped_.insert(change.position);
        whole |= change.call == CallId::lwGraphExecUpdate;
      }
    }
  }

  uint64_t position_ = 0;
  uint64_t last_other_ = 0;  // position of the newest call that may have used anything
  Objects events_, streams_, graphs_, execs_;
  std::unordered_map<uint64_t, std::vector<Change>> changes_;  // by executable
  std::vector<Capture> open_;
  std::set<uint64_t> dropped_;
};

}  // namespace

std::vector<uint64_t> Superseded(const std::map<uint64_t, JournalEntry>& entries, uint64_t first) {
  Search search;
  for (auto entry = entries.lower_bound(first); entry != entries.end(); ++entry) {
    if (!entry->second.answered) break;
    search.Take(entry->first, entry->second);
  }
  return search.Found();
}

}  // namespace longwire::worker
