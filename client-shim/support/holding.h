// Tables of ranges that do not overlap, by their first address.
#pragma once

#include <cstdint>
#include <iterator>

namespace longwire::shim {

// The range that contains the address; the table's end if none does. `bytes_of`: of an entry.
template <class Table, class BytesOf>
typename Table::iterator Holding(Table& table, uint64_t address, BytesOf bytes_of) {
  auto after = table.upper_bound(address);
  if (after == table.begin()) return table.end();
  auto found = std::prev(after);
  return address - found->first < bytes_of(found->second) ? found : table.end();
}

template <class Table>
typename Table::iterator Holding(Table& table, uint64_t address) {
  return Holding(table, address, [](const auto& entry) { return entry.bytes; });
}

}  // namespace longwire::shim
