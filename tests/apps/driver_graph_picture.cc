// A picture of a graph is written where the program runs.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "driver_graph.h"

static std::string Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

static size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

int main() {
  GraphProgram program;
  CUdeviceptr memory = program.Allocate(64);
  CUgraph graph = NewGraph(), child = NewGraph();
  CUgraphNode inner = nullptr, nested = nullptr;
  CHECK_DRIVER(cuGraphAddEmptyNode(&inner, child, nullptr, 0));
  CUgraphNode first = AddScale(graph, {}, program.scale, memory, memory, 2, 64);
  CUgraphNode second = AddScale(graph, {first}, program.scale, memory, memory, 2, 64);
  CHECK_DRIVER(cuGraphAddChildGraphNode(&nested, graph, &second, 1, child));
  std::string path = "/tmp/longwire-graph-" + std::to_string(getpid()) + ".dot";
  CHECK_DRIVER(cuGraphDebugDotPrint(graph, path.c_str(), 0));
  std::string plain = Read(path);
  EXPECT(plain.rfind("digraph", 0) == 0, "the picture begins otherwise: %s", plain.c_str());
  EXPECT(Count(plain, "->") == 2, "%zu edges", Count(plain, "->"));
  EXPECT(Count(plain, "Scale") == 2 && Count(plain, "EMPTY") == 1, "other nodes:\n%s",
         plain.c_str());
  EXPECT(Count(plain, "subgraph") == 2, "%zu graphs", Count(plain, "subgraph"));
  CHECK_DRIVER(cuGraphDebugDotPrint(graph, path.c_str(), CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
  const std::string verbose = Read(path);
  EXPECT(verbose.size() > plain.size() && Count(verbose, "->") == 2, "the verbose picture:\n%s",
         verbose.c_str());
  std::remove(path.c_str());
  EXPECT(cuGraphDebugDotPrint(nullptr, path.c_str(), 0) == CUDA_ERROR_INVALID_VALUE, "no graph");
  EXPECT(cuGraphDebugDotPrint(graph, nullptr, 0) == CUDA_ERROR_INVALID_VALUE, "no path");
  EXPECT(cuGraphDebugDotPrint(graph, "/nowhere/at/all.dot", 0) != CUDA_SUCCESS, "a bad path");
  CHECK_DRIVER(cuGraphDestroy(graph));
  CHECK_DRIVER(cuGraphDestroy(child));
  std::printf("PASS driver_graph_picture\n");
  return 0;
}
