#include "codegen/emitters.h"

namespace longwire::codegen {

std::vector<std::unique_ptr<Emitter>> MakeEmitters() {
  std::vector<std::unique_ptr<Emitter>> emitters;
  emitters.push_back(MakeCallIdsEmitter());
  emitters.push_back(MakeStructsEmitter());
  return emitters;
}

}  // namespace longwire::codegen
