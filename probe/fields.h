// The fields of lw_point, computed on the device where a probe reads them.
#pragma once

#include <cstdint>
#include <string>

#include "probe/probe.h"

namespace longwire::probe {

struct Field {
  uint32_t offset;
  uint32_t bytes;
  // PTX that leaves the value in %longwire_v. It may use %longwire_w0 to w7 (32 bits) and
  // %longwire_t0 to t3 (64 bits).
  std::string text;
};

// The field in which an access lies whole; null: there is none.
const Field* FieldAt(int64_t offset, int64_t bytes);

// Of a field that is kept or computed at the point.
bool IsBegan(const Field& field);
bool IsBeganCycles(const Field& field);
bool IsAddress(const Field& field);
// Whether the point has the field; else it is zero.
bool Has(Point point, const Field& field);

}  // namespace longwire::probe
