#include "client-shim/mirror/sent_states.h"

#include <algorithm>
#include <vector>

#include "client-shim/session/session.h"
#include "longwire/calls.h"

namespace longwire::shim {

bool PartsOfState(Mirrors& mirrors, const Channel& channel, std::vector<MirrorPart>* parts) {
  const ClientSession* session = channel.stream->session;
  for (auto& [address, mirror] : mirrors.by_address) {
    if (!IsThere(*mirror) || mirror->channel->stream->session != session) continue;
    if (mirror->channel.get() != &channel) return false;
    parts->push_back({mirror.get(), 0, mirror->range.bytes});
  }
  return true;
}

bool PushWord(Mirrors& mirrors, Channel& channel, Mirror& mirror, const wire::ChangedWord& word) {
  Stream* stream = channel.stream;
  if (AwaitedForRoom(stream) != 0) return false;
  std::vector<std::byte> delta;
  wire::AppendWord(word, &delta);
  calls::lwMirrorPush push;
  push.mirror = mirror.id;
  push.delta = delta;
  mirrors.AwaitConflict();
  stream->session->Submit(channel.where(), push);
  std::copy_n(word.is.begin(), word.bytes, mirror.shadow + word.offset);
  RecordSent(mirrors, channel);
  ++mirrors.words;
  return true;
}

void PushState(Mirrors& mirrors, Channel& channel, ProgramState& state) {
  Stream* stream = channel.stream;
  const auto deltas = state.deltas();
  for (size_t i = 0; i < deltas.size(); ++i) {
    if (AwaitStream(stream, AwaitedForRoom(stream)) != CUDA_SUCCESS) break;  // it has failed
    const bool last = i + 1 == deltas.size();
    calls::lwMirrorState push;
    push.mirror = deltas[i].mirror->id;
    push.delta = deltas[i].delta;
    push.last = last;
    mirrors.AwaitConflict();
    stream->session->Submit(channel.where(), push, push.EncodedBytes());
    stream->session->counts().uploaded.fetch_add(push.delta.size(), std::memory_order_relaxed);
  }
  state.Commit();
  mirrors.sent_state = true;
  RecordSent(mirrors, channel);
  ++mirrors.words;
}

}  // namespace longwire::shim
