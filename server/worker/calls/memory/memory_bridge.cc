// Copies over bridges to other servers, and the bridges themselves.
#include "longwire/worker_hand_written.h"
#include "server/protocol/bridges.h"
#include "server/worker/calls/call_context.h"
#include "server/worker/calls/memory/memory_pieces.h"

namespace longwire::worker {
namespace {

// A session's own logs are lane 0 of the daemon's.
constexpr uint32_t kFirstDaemonLane = 1;

bool IsBridge(CallContext& context, uint32_t bridge) {
  return bridge != 0 && bridge <= context.session().lanes().bridges();
}

bridges::Answer Ask(CallContext& context, uint32_t bridge, bridges::Step step,
                    bridges::Ask ask = {}) {
  const Lanes& lanes = context.session().lanes();
  ask.step = static_cast<uint32_t>(step);
  ask.first_lane = kFirstDaemonLane + lanes.FirstOf(bridge);
  ask.lanes = lanes.CountOf(bridge);
  return context.session().bridges().Ask(std::move(ask));
}

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Until the reply is encoded.
std::span<const std::byte> Kept(CallContext& context, const std::string& text) {
  return std::as_bytes(std::span(context.Keep(text)));
}

}  // namespace

CUresult Do_lwBridgeSend(CallContext& context, const calls::lwBridgeSend& call,
                         calls::lwBridgeSend::Reply*) {
  if (context.capturing() || !IsBridge(context, call.bridge)) return CUDA_ERROR_INVALID_VALUE;
  return SendPieces(context, call.place, call.bytes,
                    {.transfer = call.transfer, .bridge = call.bridge, .by_lanes = true});
}

CUresult Do_lwBridgeReceive(CallContext& context, const calls::lwBridgeReceive& call,
                            calls::lwBridgeReceive::Reply*) {
  WorkerSession& session = context.session();
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (!context.capturing() && IsBridge(context, call.bridge)) {
    calls::lwCopyToDevice copy;
    copy.place = call.place;
    copy.bytes = call.bytes;
    copy.transfer = call.transfer;
    result = ReceivePieces(context, copy);
    // Also what has come is not the copy.
    if (result == kNotYet && session.lanes().HasEnded(call.bridge)) {
      context.Refuse(CUDA_ERROR_LAUNCH_FAILED, "the bytes of a copy from another server are lost");
      result = CUDA_ERROR_LAUNCH_FAILED;
    }
  }
  if (result != kNotYet) session.transfers().FinishCopy(call.transfer);
  return result;
}

CUresult Do_lwBridgeOffer(CallContext& context, const calls::lwBridgeOffer& call,
                          calls::lwBridgeOffer::Reply* reply) {
  if (!IsBridge(context, call.bridge)) return CUDA_ERROR_INVALID_VALUE;
  const bridges::Answer answer = Ask(context, call.bridge, bridges::Step::kOffer);
  reply->digest = Kept(context, answer.secret);
  return answer.done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult Do_lwBridgeTicket(CallContext& context, const calls::lwBridgeTicket& call,
                           calls::lwBridgeTicket::Reply* reply) {
  if (!IsBridge(context, call.bridge)) return CUDA_ERROR_INVALID_VALUE;
  bridges::Ask ask;
  ask.secret = TextOf(call.digest);
  const bridges::Answer answer = Ask(context, call.bridge, bridges::Step::kTicket, ask);
  const Lanes& lanes = context.session().lanes();
  reply->ticket = Kept(context, answer.secret);
  reply->first_lane = kFirstDaemonLane + lanes.FirstOf(call.bridge);
  reply->lanes = lanes.CountOf(call.bridge);
  reply->epoch = answer.epoch;
  return answer.done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult Do_lwBridgeConnect(CallContext& context, const calls::lwBridgeConnect& call,
                            calls::lwBridgeConnect::Reply* reply) {
  if (!IsBridge(context, call.bridge)) return CUDA_ERROR_INVALID_VALUE;
  bridges::Ask ask;
  ask.secret = TextOf(call.ticket);
  ask.address = std::string(call.address);
  ask.session = call.session;
  ask.far_lane = call.first_lane;
  ask.epoch = call.epoch;
  const bridges::Answer answer = Ask(context, call.bridge, bridges::Step::kConnect, ask);
  if (answer.done) return CUDA_SUCCESS;
  reply->sentence =
      context.Keep(answer.sentence.empty() ? "the server does not say why" : answer.sentence);
  return CUDA_SUCCESS;
}

CUresult Do_lwBridgeState(CallContext& context, const calls::lwBridgeState& call,
                          calls::lwBridgeState::Reply* reply) {
  if (!IsBridge(context, call.bridge)) return CUDA_ERROR_INVALID_VALUE;
  reply->connected = Ask(context, call.bridge, bridges::Step::kState).done;
  return CUDA_SUCCESS;
}

CUresult Do_lwBridgeFigures(CallContext& context, const calls::lwBridgeFigures& call,
                            calls::lwBridgeFigures::Reply* reply) {
  if (call.bridge != 0) return CUDA_ERROR_INVALID_VALUE;
  reply->sentence = context.Keep(context.session().bridge_figures().Sentence());
  return CUDA_SUCCESS;
}

CUresult Do_lwBridgeEnd(CallContext& context, const calls::lwBridgeEnd& call,
                        calls::lwBridgeEnd::Reply*) {
  if (!IsBridge(context, call.bridge)) return CUDA_ERROR_INVALID_VALUE;
  context.session().lanes().EndBridge(call.bridge);
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
