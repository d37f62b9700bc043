// A picture of a graph in the language of Graphviz, written where the program runs.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "client-shim/calls/graph/graph_node.h"
#include "client-shim/graph/graph_bodies.h"
#include "longwire/shim_hand_written.h"
#include "wire/descriptors.h"

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

// What a node does, for verbose pictures.
void PrintParameters(std::FILE* file, CUgraphNode node, CUgraphNodeType type) {
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    CUDA_KERNEL_NODE_PARAMS p{};
    if (hand::cuGraphKernelNodeGetParams_v2(node, &p) != CUDA_SUCCESS) return;
    std::fprintf(file, "\\n%u,%u,%u x %u,%u,%u, %u bytes", p.gridDimX, p.gridDimY, p.gridDimZ,
                 p.blockDimX, p.blockDimY, p.blockDimZ, p.sharedMemBytes);
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

const char* KernelName(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS p{};
  const char* name = nullptr;
  if (hand::cuGraphKernelNodeGetParams_v2(node, &p) != CUDA_SUCCESS) return "KERNEL";
  CUresult named =
      p.func != nullptr ? hand::cuFuncGetName(&name, p.func) : hand::cuKernelGetName(&name, p.kern);
  return named == CUDA_SUCCESS && name != nullptr ? name : "KERNEL";
}

// As the driver draws it: a cluster for each graph, with its nodes counted from 0; a child graph's
// cluster comes after that of the graph that has it.
struct Picture {
  std::FILE* file;
  bool verbose;
  unsigned graphs = 0;
  std::vector<std::pair<CUgraph, unsigned>> waiting{};

  CUresult PrintAll(CUgraph graph) {
    waiting.emplace_back(graph, ++graphs);
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < waiting.size() && result == CUDA_SUCCESS; ++i) {
      result = Print(waiting[i].first, waiting[i].second);
    }
    return result;
  }

  CUresult Print(CUgraph graph, unsigned number) {
    size_t count = 0;
    CUresult result = forward::cuGraphGetNodes(graph, nullptr, &count);
    std::vector<CUgraphNode> nodes(count);
    if (result == CUDA_SUCCESS && count != 0) {
      result = forward::cuGraphGetNodes(graph, nodes.data(), &count);
    }
    if (result != CUDA_SUCCESS) return result;
    std::fprintf(file, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n",
                 number, number);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
      result = PrintNode(nodes[i], number, i);
    }
    if (result == CUDA_SUCCESS) result = PrintEdges(graph, number, nodes);
    std::fputs("}\n", file);
    return result;
  }

  CUresult PrintNode(CUgraphNode node, unsigned graph, size_t number) {
    CUgraphNodeType type{};
    LONGWIRE_TRY(forward::cuGraphNodeGetType(node, &type));
    std::string name = NameOf(type);
    CUgraph child = nullptr;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      LONGWIRE_TRY(forward::cuGraphChildGraphNodeGetGraph(node, &child));
      waiting.emplace_back(child, ++graphs);
      name = "graph_" + std::to_string(graphs);
    }
    if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      for (CUgraph body : BodiesOf(node)) waiting.emplace_back(body, ++graphs);
    }
    bool kernel = type == CU_GRAPH_NODE_TYPE_KERNEL;
    if (kernel) name = KernelName(node);
    std::fprintf(file, "\"graph_%u_node_%zu\"[style=\"%s\" shape=\"%s\" label=\"%zu\n%s", graph,
                 number, kernel ? "bold" : "solid", kernel ? "octagon" : "rectangle", number,
                 name.c_str());
    if (verbose) PrintParameters(file, node, type);
    std::fputs("\n\"];\n\n", file);
    return CUDA_SUCCESS;
  }

  CUresult PrintEdges(CUgraph graph, unsigned number, const std::vector<CUgraphNode>& nodes) {
    size_t count = 0;
    CUresult result = forward::cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count);
    if (result != CUDA_SUCCESS || count == 0) return result;
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    result = forward::cuGraphGetEdges_v2(graph, from.data(), to.data(), data.data(), &count);
    auto place = [&](CUgraphNode node) {
      return std::find(nodes.begin(), nodes.end(), node) - nodes.begin();
    };
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; ++i) {
      std::fprintf(file, "\"graph_%u_node_%td\" -> \"graph_%u_node_%td\";\n", number,
                   place(from[i]), number, place(to[i]));
    }
    return result;
  }
};

}  // namespace

CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char* path, unsigned int flags) {
  if (path == nullptr || ToWire(hGraph) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* file = wire::OpenStream(path, "w");
  if (file == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Picture picture{file, flags != 0};
  std::fputs("digraph dot {\n", file);
  CUresult result = picture.PrintAll(hGraph);
  std::fputs("}\n", file);
  bool written = std::ferror(file) == 0;
  written = std::fclose(file) == 0 && written;
  return result == CUDA_SUCCESS && !written ? CUDA_ERROR_OPERATING_SYSTEM : result;
}

}  // namespace longwire::shim::hand
