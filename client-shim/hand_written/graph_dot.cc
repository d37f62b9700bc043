// A picture of a graph in the language of Graphviz, written where the program runs.
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "client-shim/graph_bodies.h"
#include "client-shim/hand_written/graph_node.h"
#include "longwire/shim_hand_written.h"

namespace longwire::shim::hand {
namespace {

const char* NameOf(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "EVENT_WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "MEM_FREE";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return "MEM_OP";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "CONDITIONAL";
    default:
      return "OTHER";
  }
}

uint64_t Number(CUgraphNode node) { return reinterpret_cast<uint64_t>(node) & INT64_MAX; }

// What a node does, for verbose pictures.
void PrintParameters(std::FILE* file, CUgraphNode node, CUgraphNodeType type) {
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    CUDA_KERNEL_NODE_PARAMS p{};
    const char* name = nullptr;
    if (hand::cuGraphKernelNodeGetParams_v2(node, &p) != CUDA_SUCCESS) return;
    CUresult named = p.func != nullptr ? hand::cuFuncGetName(&name, p.func)
                                       : hand::cuKernelGetName(&name, p.kern);
    std::fprintf(file, "\\n%s\\n%u,%u,%u x %u,%u,%u, %u bytes",
                 named == CUDA_SUCCESS && name != nullptr ? name : "?", p.gridDimX, p.gridDimY,
                 p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    CUDA_MEMCPY3D p{};
    if (hand::cuGraphMemcpyNodeGetParams(node, &p) != CUDA_SUCCESS) return;
    std::fprintf(file, "\\n%zu x %zu x %zu bytes", p.WidthInBytes, p.Height, p.Depth);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CUDA_MEMSET_NODE_PARAMS p{};
    if (forward::cuGraphMemsetNodeGetParams(node, &p) != CUDA_SUCCESS) return;
    std::fprintf(file, "\\n%#" PRIx64 ", %zu x %zu of %#x", static_cast<uint64_t>(p.dst), p.width,
                 p.height, p.value);
  }
}

struct Picture {
  std::FILE* file;
  bool verbose;
  unsigned graphs = 0;

  CUresult Print(CUgraph graph) {
    size_t count = 0;
    CUresult result = forward::cuGraphGetNodes(graph, nullptr, &count);
    std::vector<CUgraphNode> nodes(count);
    if (result == CUDA_SUCCESS && count != 0) {
      result = forward::cuGraphGetNodes(graph, nodes.data(), &count);
    }
    if (result != CUDA_SUCCESS) return result;
    unsigned number = graphs++;
    std::fprintf(file, "subgraph cluster_%u {\nlabel=\"graph_%u\"\n", number, number);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) result = PrintNode(nodes[i]);
    if (result == CUDA_SUCCESS) result = PrintEdges(graph);
    std::fputs("}\n", file);
    return result;
  }

  CUresult PrintNode(CUgraphNode node) {
    CUgraphNodeType type{};
    CUresult result = forward::cuGraphNodeGetType(node, &type);
    if (result != CUDA_SUCCESS) return result;
    std::fprintf(file, "\"node_%" PRIu64 "\" [shape=\"box\" label=\"%" PRIu64 "\\n%s", Number(node),
                 Number(node), NameOf(type));
    if (verbose) PrintParameters(file, node, type);
    std::fputs("\"];\n", file);
    for (CUgraph body : BodiesOf(node)) {
      if (result == CUDA_SUCCESS) result = Print(body);
    }
    CUgraph child = nullptr;
    if (type != CU_GRAPH_NODE_TYPE_GRAPH) return result;
    result = forward::cuGraphChildGraphNodeGetGraph(node, &child);
    return result == CUDA_SUCCESS ? Print(child) : result;
  }

  CUresult PrintEdges(CUgraph graph) {
    size_t count = 0;
    CUresult result = forward::cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count);
    if (result != CUDA_SUCCESS || count == 0) return result;
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    result = forward::cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
      std::fprintf(file, "\"node_%" PRIu64 "\" -> \"node_%" PRIu64 "\";\n", Number(from[i]),
                   Number(to[i]));
    }
    return result;
  }
};

}  // namespace

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  if (path == nullptr || ToWire(hGraph) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Picture picture{file, flags != 0};
  std::fputs("digraph dot {\n", file);
  CUresult result = picture.Print(hGraph);
  std::fputs("}\n", file);
  bool written = std::fclose(file) == 0;
  return result == CUDA_SUCCESS && !written ? CUDA_ERROR_OPERATING_SYSTEM : result;
}

}  // namespace longwire::shim::hand
