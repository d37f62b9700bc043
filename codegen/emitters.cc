#include "codegen/emitters.h"

namespace longwire::codegen {

std::vector<std::unique_ptr<Emitter>> MakeEmitters() {
  std::vector<std::unique_ptr<Emitter>> emitters;
  emitters.push_back(MakeCallIdsEmitter());
  emitters.push_back(MakeStructsEmitter());
  emitters.push_back(MakeEntriesEmitter());
  emitters.push_back(MakeHandWrittenEmitter());
  emitters.push_back(MakeForwardEmitter());
  emitters.push_back(MakeProcTableEmitter());
  emitters.push_back(MakeDriverTableEmitter());
  emitters.push_back(MakeDispatchEmitter());
  emitters.push_back(MakeVisitorEmitter());
  emitters.push_back(MakePrinterEmitter());
  emitters.push_back(MakeFakeDriverEmitter());
  emitters.push_back(MakeEveryCallEmitter());
  emitters.push_back(MakeSupportEmitter());
  return emitters;
}

}  // namespace longwire::codegen
