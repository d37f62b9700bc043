// How what the program has changed is sent while work runs: one word, or a state of several.
#pragma once

#include <span>

#include "client-shim/mirror/mirror_table.h"
#include "client-shim/mirror/program_state.h"
#include "wire/live/changed_word.h"

namespace longwire::shim {

// Of a channel, the mirrors that belong to a state: all that are there. False, if the channel does
// not carry everything that kernels of its server share with the program.
bool PartsOfState(Mirrors& mirrors, const Channel& channel, std::vector<MirrorPart>* parts)
    LONGWIRE_REQUIRES(mirrors.mutex);

// False: there is no room in the stream now.
bool PushWord(Mirrors& mirrors, Channel& channel, Mirror& mirror, const wire::ChangedWord& word)
    LONGWIRE_REQUIRES(mirrors.mutex);
// What was taken.
void PushState(Mirrors& mirrors, Channel& channel, ProgramState& state)
    LONGWIRE_REQUIRES(mirrors.mutex);

}  // namespace longwire::shim
