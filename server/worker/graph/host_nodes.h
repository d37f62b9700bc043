// What the driver keeps of the host nodes of graphs: numbers, and no pointers. A graph may call a
// node that the worker has forgotten, of a graph that was wrong in some way; it must not reach
// memory that has become something else by then.
#pragma once

#include <cstdint>
#include <memory>

#include "server/worker/support/driver.h"

namespace longwire::worker {
struct GraphPart;
}

namespace longwire::worker::host_nodes {

// Both are called on threads of the driver.
class Runner {
 public:
  virtual void RunHostNode(GraphPart& part) = 0;
  virtual void HostNodeIsLost() = 0;

 protected:
  ~Runner() = default;
};
void Serve(Runner* runner);  // null: the session ends

// The function of every such node; what it is given is the part's number.
void CUDA_CB Call(void* number);

uint64_t Add(const std::shared_ptr<GraphPart>& part);
std::shared_ptr<GraphPart> Find(const void* number);  // null: not known (any more)
void Forget(uint64_t number);

}  // namespace longwire::worker::host_nodes
