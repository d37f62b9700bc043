// Graphs in their executable form.
#pragma once

#include <memory>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/stream/stream.h"

namespace softgpu {

struct GraphExec {
  std::shared_ptr<Graph> plan;   // a private clone; its nodes are not in Driver::nodes
  unsigned long long flags = 0;  // constant once it is in the table
  // Of the newest launch; the next one comes after it in whatever stream.
  CompletionRef last LONGWIRE_GUARDED_BY(Driver::mutex);
};

// Chooses the clusters of every kernel of a graph that is about to run, its child graphs' too.
CUresult ChooseClusters(Graph& plan) LONGWIRE_REQUIRES(Driver::mutex);
CUresult LaunchGraph(GraphExec& exec, Stream& stream) LONGWIRE_REQUIRES(Driver::mutex);

}  // namespace softgpu
