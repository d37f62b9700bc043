#include "server/worker/issue/sorted.h"

#include "longwire/calls.h"
#include "server/worker/completion/events.h"
#include "server/worker/graph/graphs.h"
#include "server/worker/transfer/transfers.h"
#include "wire/guards.h"
#include "wire/record.h"

namespace longwire::worker {
namespace {

template <class Call>
wire::WireResult Decode(const QueuedCall& record, Call* call) {
  wire::Reader reader(record.arguments);
  return call->Decode(reader);
}

// Each event of a launch has its version.
wire::WireResult Decode(const QueuedCall& record, calls::lwGraphLaunch* call) {
  LW_TRY(Decode<calls::lwGraphLaunch>(record, call));
  bool good = call->record.size() == call->record_version.size() &&
              call->wait.size() == call->wait_version.size();
  return good || wire::kPlantedBug ? wire::WireResult::kOk : wire::WireResult::kFatal;
}

}  // namespace

wire::WireResult AfterSorted(Bookkeeping bookkeeping, const QueuedCall& record) {
  switch (record.call) {
    case CallId::lwEventRecord: {
      calls::lwEventRecord call;
      LW_TRY(Decode(record, &call));
      bookkeeping.events.RecordSorted(call.event, call.version);
      break;
    }
    case CallId::lwStreamWaitEvent: {
      calls::lwStreamWaitEvent call;
      LW_TRY(Decode(record, &call));
      bookkeeping.events.WaitSorted(call.event, call.version);
      break;
    }
    case CallId::lwGraphLaunch: {
      calls::lwGraphLaunch call;
      LW_TRY(Decode(record, &call));
      bookkeeping.graphs.LaunchRead(call.exec, record.position);
      for (size_t i = 0; i < call.record.size(); ++i) {
        bookkeeping.events.RecordSorted(call.record[i], call.record_version[i]);
      }
      for (size_t i = 0; i < call.wait.size(); ++i) {
        bookkeeping.events.WaitSorted(call.wait[i], call.wait_version[i]);
      }
      break;
    }
    case CallId::lwCopyToDevice: {
      calls::lwCopyToDevice call;
      LW_TRY(Decode(record, &call));
      bool captured = (record.flags & wire::kCapturing) != 0;
      if (call.data.empty() && call.bytes != 0 && !captured) {
        bookkeeping.transfers.ExpectCopy(call.transfer, call.bytes);
      }
      break;
    }
    case CallId::lwBridgeReceive: {
      calls::lwBridgeReceive call;
      LW_TRY(Decode(record, &call));
      if (call.bytes != 0) bookkeeping.transfers.ExpectCopy(call.transfer, call.bytes);
      break;
    }
    default:
      break;
  }
  return wire::WireResult::kOk;
}

void AfterDropped(Bookkeeping bookkeeping, const QueuedCall& record) {
  switch (record.call) {
    case CallId::lwEventRecord: {
      calls::lwEventRecord call;
      if (Decode(record, &call) != wire::WireResult::kOk) return;
      bookkeeping.events.RecordDropped(call.event, call.version);
      break;
    }
    case CallId::lwStreamWaitEvent: {
      calls::lwStreamWaitEvent call;
      if (Decode(record, &call) != wire::WireResult::kOk) return;
      bookkeeping.events.WaitDropped(call.event, call.version);
      break;
    }
    case CallId::lwGraphLaunch: {
      calls::lwGraphLaunch call;
      if (Decode(record, &call) != wire::WireResult::kOk) return;
      bookkeeping.graphs.LaunchDropped(call.exec, record.position);
      for (size_t i = 0; i < call.record.size(); ++i) {
        bookkeeping.events.RecordDropped(call.record[i], call.record_version[i]);
      }
      for (size_t i = 0; i < call.wait.size(); ++i) {
        bookkeeping.events.WaitDropped(call.wait[i], call.wait_version[i]);
      }
      break;
    }
    case CallId::lwCopyToDevice: {
      calls::lwCopyToDevice call;
      if (Decode(record, &call) != wire::WireResult::kOk) return;
      bookkeeping.transfers.FinishCopy(call.transfer);
      break;
    }
    case CallId::lwBridgeReceive: {
      calls::lwBridgeReceive call;
      if (Decode(record, &call) != wire::WireResult::kOk) return;
      bookkeeping.transfers.FinishCopy(call.transfer);
      break;
    }
    default:
      break;
  }
}

}  // namespace longwire::worker
