// Functions that generated calls use: the target of a call, and the two ways to send it.
#pragma once

#include <cuda.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/try.h"
#include "client-shim/context/context.h"
#include "client-shim/entry/handles.h"
#include "client-shim/entry/kept_answers.h"
#include "client-shim/session/session.h"

namespace longwire::shim {

using ReplyBytes = std::vector<std::byte>;

// The target of a forwarded call: the current context, if there is one, and a stream by its number
// (0: none, kNoSuchStream: the handle was invalid). What names a device (-1: nothing does) of
// another server than the context's goes to that server, to no context. CUDA_ERROR_INVALID_HANDLE,
// or the context's error.
CUresult ForwardTo(uint64_t stream, Where* where, CUdevice device = -1);

template <class Call>
CUresult Submit(const Call& call, uint64_t stream, CUdevice device = -1) {
  Where where;
  LONGWIRE_TRY(ForwardTo(stream, &where, device));
  uint64_t position = where.session->Submit(where, call);
  return ClientSession::Queued(position);
}

// What came in reply to this very call before, if it is kept; else asks, and keeps it.
template <class Call>
CUresult LastingAnswer(const Call& call, const Where& where, typename Call::Reply* reply,
                       ReplyBytes* bytes) {
  KeptAnswers* answers = TheKeptAnswers();
  wire::Writer arguments;
  call.Encode(arguments);
  const std::string key = KeyOfAnswer(static_cast<uint16_t>(Call::kId), where, arguments);
  if (auto kept = answers == nullptr ? std::nullopt : answers->Find(key)) {
    *bytes = std::move(*kept);
    wire::Reader reader(*bytes);
    return reply->Decode(reader) == wire::WireResult::kOk ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  }
  auto answer = where.session->CallAndWait(where, call);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  if (answers != nullptr) answers->Keep(key, answer.bytes);
  *bytes = std::move(answer.bytes);
  *reply = std::move(answer.reply);
  return CUDA_SUCCESS;
}

template <class Call>
CUresult CallAndWait(const Call& call, uint64_t stream, typename Call::Reply* reply,
                     ReplyBytes* bytes, CUdevice device = -1) {
  Where where;
  LONGWIRE_TRY(ForwardTo(stream, &where, device));
  if constexpr (HasLastingAnswer(Call::kId)) return LastingAnswer(call, where, reply, bytes);
  auto answer = where.session->CallAndWait(where, call);
  if (answer.code != CUDA_SUCCESS) return answer.code;
  *bytes = std::move(answer.bytes);  // the reply's views point into it; a move keeps its address
  *reply = std::move(answer.reply);
  return CUDA_SUCCESS;
}

}  // namespace longwire::shim
