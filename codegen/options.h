// The options of a call that say yes or no, one row each: which calls may have the option, and the
// predicate that call_ids.h gets for it. annotations.proto explains each option.
#pragma once

#include <span>

#include "codegen/model.h"

namespace longwire::codegen {

// The calls that an option is for.
enum class Applies { kExported, kForwarded, kPrivate, kInStreams, kOutsideStreams, kTravels };

struct Option {
  const char* name;
  bool Call::*member;
  Applies applies;
  const char* predicate = nullptr;  // of call_ids.h; null: only the generator asks
  const char* comment = nullptr;    // above the predicate
};

std::span<const Option> BoolOptions();

// The option's constant in call_ids.h: "kGated" for "gated".
std::string ConstantOf(const Option& option);

bool DoesApply(Applies applies, const Call& call);
// "calls that a stream orders"
const char* WhichCalls(Applies applies);

}  // namespace longwire::codegen
