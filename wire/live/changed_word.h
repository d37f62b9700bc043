// Finds the one aligned word in which memory differs from a shadow, if it differs nowhere else:
// such a change can be made visible by one store, so nobody sees a part of it.
//
// Others write the memory meanwhile. Let two copies of it be made, the second one after the first
// was complete. If every word but W is in both copies as in the shadow, then every other word had
// its value before W was read, when the shadow was made, and after that, in the second copy. So the
// shadow's words together with W, as the first copy has it, are a state in which of any two words
// either may be read first: nothing in it is older than what was written before it. That holds in
// whatever order the words were copied.
//
// Copies that are equal everywhere are a state, too, however many words have changed. Of two words
// x and y each is there with a value that it had in the first copy and in the second one. Whoever
// reads x and then y could have read x in the first and y in the second, and the other way round.
// So where x is written before y and y is new, x is new as well. One word that differs between the
// copies spoils that: if it is written between two others, neither of its values fits both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace longwire::wire {

// A range of memory, or a copy of it, and what the other end has of it.
struct ComparedRange {
  std::span<const std::byte> now;
  const std::byte* shadow = nullptr;
  uint64_t address = 0;  // of its first byte where the word is stored, which decides the alignment
};

// `bytes` is 1, 2, 4 or 8, and the word is aligned to that.
struct ChangedWord {
  size_t range = 0;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  std::array<std::byte, 8> was{};  // as the shadow has it
  std::array<std::byte, 8> is{};
};

// kWord: all changed bytes lie in one aligned word of the range; the smallest one is in `word`.
enum class Difference { kNone, kWord, kMore };
Difference FindDifference(std::span<const ComparedRange> ranges, ChangedWord* word);

// Whether a later copy has nothing new beside the word: then the word may be sent.
bool Confirms(std::span<const ComparedRange> later, const ChangedWord& word);

// Stores the word's `bytes` bytes, 1, 2, 4 or 8, at once where only those that differ between `was`
// and `is` change. False, and nothing is stored, where one of these has been changed to something
// else: the memory has neither the old nor the new byte.
bool StoreWord(void* place, uint32_t bytes, const std::byte* was, const std::byte* is);

}  // namespace longwire::wire
