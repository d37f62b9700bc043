// Copy nodes of graphs. A side in the program's memory is pinned memory here.
#include "base/try.h"
#include "longwire/worker_hand_written.h"
#include "server/worker/calls/graph/graph_nodes.h"
#include "server/worker/transfer/copies.h"

namespace longwire::worker {
namespace {

// The driver's form of a node, and what it needs of the program (null: nothing).
struct CopyNode {
  CUDA_MEMCPY3D params{};
  GraphPartRef part;
  CUcontext context = nullptr;
};

CUresult MakeSide(CallContext& context, const calls::Place& place, uint64_t bytes,
                  CopyPlace* made) {
  CUarray array = nullptr;
  LONGWIRE_TRY(context.Resolve(place.array, &array));
  return MakePlace(place, array, bytes, made) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Whose other copies may share the memory; null: not known.
struct Owner {
  CUgraph graph = nullptr;
  const GraphExec* exec = nullptr;
};

CUresult MakeHostSide(CallContext& context, const Owner& owner, uint64_t transfer, uint64_t first,
                      uint64_t span, GraphCopy* copy) {
  copy->first = first;
  copy->span = span;
  CUresult result =
      context.session().graphs().GiveMemory(owner.graph, owner.exec, copy, span == copy->bytes);
  if (result == CUDA_SUCCESS) copy->transfer = transfer;
  return result;
}

CUresult MakeCopyNode(CallContext& context, const Owner& owner, const calls::MemcpyNode& copy,
                      CopyNode* node) {
  if (context.context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  node->context = context.context()->handle;
  CopyPlace to, from;
  LONGWIRE_TRY(MakeSide(context, copy.destination, copy.bytes, &to));
  LONGWIRE_TRY(MakeSide(context, copy.source, copy.bytes, &from));
  if (copy.bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  GraphPartRef part = context.session().graphs().NewPart();
  part->copy = copy;
  part->read.bytes = copy.read != 0 ? copy.bytes : 0;
  part->write.bytes = copy.write != 0 ? copy.bytes : 0;
  if (copy.read != 0) {
    LONGWIRE_TRY(
        MakeHostSide(context, owner, copy.read, copy.read_first, copy.read_span, &part->read));
  }
  if (copy.write != 0) {
    LONGWIRE_TRY(
        MakeHostSide(context, owner, copy.write, copy.write_first, copy.write_span, &part->write));
  }
  node->params = DescribeCopy(to, part->write.data, from, part->read.data);
  if (copy.read != 0 || copy.write != 0) node->part = std::move(part);
  return CUDA_SUCCESS;
}

// A side as the driver describes it, which does not know the extent there.
calls::Place Told(CallContext& context, const CUDA_MEMCPY3D& copy, bool destination) {
  calls::Place place;
  CUarray array = destination ? copy.dstArray : copy.srcArray;
  CUmemorytype type = destination ? copy.dstMemoryType : copy.srcMemoryType;
  place.address = destination ? copy.dstDevice : copy.srcDevice;
  place.array = type == CU_MEMORYTYPE_ARRAY ? context.Publish(array) : 0;
  place.x_bytes = destination ? copy.dstXInBytes : copy.srcXInBytes;
  place.y = destination ? copy.dstY : copy.srcY;
  place.z = destination ? copy.dstZ : copy.srcZ;
  place.pitch = destination ? copy.dstPitch : copy.srcPitch;
  place.height = destination ? copy.dstHeight : copy.srcHeight;
  place.width_bytes = copy.WidthInBytes;
  place.rows = copy.Height;
  place.slices = copy.Depth;
  return place;
}

// A host function without a function: what was written above it goes to the program, and what is
// read below it is fetched there.
CUresult AddFetching(CallContext& context, NewNode* place, CUgraphNode* added) {
  Graphs& graphs = context.session().graphs();
  GraphPartRef part = graphs.NewHostPart();
  CUDA_HOST_NODE_PARAMS params{};
  params.fn = &host_nodes::Call;
  params.userData = reinterpret_cast<void*>(part->number);
  LONGWIRE_TRY(context.driver().cuGraphAddHostNode(added, place->graph, place->dependencies.data(),
                                                   place->dependencies.size(), &params));
  graphs.store().Announce(part);
  graphs.SetPart(place->graph, *added, std::move(part));
  place->dependencies.push_back(*added);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult Do_lwGraphAddMemcpy(CallContext& context, const calls::lwGraphAddMemcpy& call,
                             calls::lwGraphAddMemcpy::Reply* reply) {
  NewNode place;
  CopyNode node;
  CUresult result = place.Resolve(context, call);
  if (result == CUDA_SUCCESS)
    result = MakeCopyNode(context, {place.graph, nullptr}, call.copy, &node);
  CUgraphNode added = nullptr, fetching = nullptr;
  if (result == CUDA_SUCCESS && node.part != nullptr && node.part->read.transfer != 0 &&
      context.session().graphs().ReadsWhatIsWritten(place.graph, node.part->read)) {
    result = AddFetching(context, &place, &fetching);
  }
  if (result == CUDA_SUCCESS) {
    result = context.driver().cuGraphAddMemcpyNode(&added, place.graph, place.dependencies.data(),
                                                   place.dependencies.size(), &node.params,
                                                   node.context);
  }
  Graphs& graphs = context.session().graphs();
  if (result != CUDA_SUCCESS) {
    if (fetching == nullptr) return result;
    graphs.ForgetNode(fetching);
    context.driver().cuGraphDestroyNode(fetching);
    return result;
  }
  if (node.part != nullptr) graphs.store().Announce(node.part);
  graphs.SetPart(place.graph, added, std::move(node.part));
  reply->node = context.Publish(added);
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphSetMemcpy(CallContext& context, const calls::lwGraphSetMemcpy& call,
                             calls::lwGraphSetMemcpy::Reply*) {
  const DriverTable& driver = context.driver();
  Graphs& graphs = context.session().graphs();
  ChangedNode changed;
  CopyNode node;
  LONGWIRE_TRY(changed.Resolve(context, call));
  CUgraph graph = changed.exec == nullptr ? graphs.GraphOf(changed.node) : nullptr;
  GraphPartRef before =
      changed.exec != nullptr ? graphs.PartInExec(*changed.exec, changed.node) : nullptr;
  if (changed.exec != nullptr) {
    // An executable's copy keeps its direction, as the driver demands it.
    bool read = before != nullptr && before->read.transfer != 0;
    bool write = before != nullptr && before->write.transfer != 0;
    if (read != (call.copy.read != 0) || write != (call.copy.write != 0)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  LONGWIRE_TRY(MakeCopyNode(context, {graph, changed.exec.get()}, call.copy, &node));
  std::shared_ptr<const GraphPlan> plan;
  if (changed.exec != nullptr && node.part != nullptr) {
    LONGWIRE_TRY(graphs.PlanWith(*changed.exec, {{changed.node, node.part}}, &plan));
  }
  LONGWIRE_TRY(changed.exec == nullptr
                   ? driver.cuGraphMemcpyNodeSetParams(changed.node, &node.params)
                   : driver.cuGraphExecMemcpyNodeSetParams(changed.exec->handle, changed.node,
                                                           &node.params, node.context));
  if (node.part != nullptr) graphs.store().Announce(node.part);
  if (changed.exec == nullptr) {
    graphs.SetPart(graph, changed.node, std::move(node.part));
  } else if (plan != nullptr) {
    graphs.SetPlan(*changed.exec, std::move(plan));
  }
  return CUDA_SUCCESS;
}

CUresult Do_lwGraphMemcpy(CallContext& context, const calls::lwGraphMemcpy& call,
                          calls::lwGraphMemcpy::Reply* reply) {
  CUgraphNode node = nullptr;
  CUDA_MEMCPY3D params{};
  LONGWIRE_TRY(context.Resolve(call.node, &node));
  LONGWIRE_TRY(context.driver().cuGraphMemcpyNodeGetParams(node, &params));
  if (GraphPartRef part = context.session().graphs().PartOf(node)) {
    reply->copy = part->copy;
    return CUDA_SUCCESS;
  }
  reply->copy.destination = Told(context, params, true);
  reply->copy.source = Told(context, params, false);
  reply->copy.bytes = params.WidthInBytes * params.Height * params.Depth;
  return CUDA_SUCCESS;
}

}  // namespace longwire::worker
