// The rules by which parameters travel. Each role of rules.cc turns one parameter into fields of
// the request and of the reply; a parameter that none covers is an error.
#pragma once

#include "codegen/model.h"

namespace longwire::codegen {

// Sets every parameter's role and the wire fields of the calls that travel and of the records.
void ApplyRules(Api* api, Errors* errors);

// Refuses contradictions: unknown counts, same_as and destroys that lead nowhere, two variants of a
// name introduced at once, kinds that do not fit the body. Also finds each name's newest variant.
void Check(Api* api, Errors* errors);

}  // namespace longwire::codegen
