// Lists of graphs: without room, with too little, with just enough, with too much.
#include "check.h"

namespace conformance {
namespace {

constexpr size_t kRoom = 8;

// Prints each entry of a list: 0 for null, - for the value before the call, x for another one.
template <class Handle>
void PrintEntries(const char* list, const Handle (&places)[kRoom], Handle marker) {
  std::printf("graph_lists.cc:places of %s = ", list);
  for (Handle place : places) {
    std::printf("%c", place == nullptr ? '0' : place == marker ? '-' : 'x');
  }
  std::printf("\n");
}

template <class Ask>
void EachRoom(const char* name, Ask ask) {
  const auto marker = reinterpret_cast<CUgraphNode>(0x77);
  for (size_t room : {0, 1, 2, 3, 4, 7, 8}) {
    CUgraphNode nodes[kRoom];
    for (auto& node : nodes) node = marker;
    size_t count = room;
    CUresult result = ask(nodes, &count);
    std::printf("graph_lists.cc:%s with room for %zu = %d, %zu\n", name, room, result, count);
    PrintEntries(name, nodes, marker);
  }
  size_t count = 99;
  CUresult result = ask(nullptr, &count);
  std::printf("graph_lists.cc:%s without a list = %d, %zu\n", name, result, count);
}

// a → b → d, a → c → d, and e alone.
struct Diamond {
  CUgraph graph = nullptr;
  CUgraphNode a = nullptr, b = nullptr, c = nullptr, d = nullptr, e = nullptr;
  Diamond() {
    CODE(cuGraphCreate(&graph, 0));
    CODE(cuGraphAddEmptyNode(&a, graph, nullptr, 0));
    CODE(cuGraphAddEmptyNode(&b, graph, &a, 1));
    CODE(cuGraphAddEmptyNode(&c, graph, &a, 1));
    const CUgraphNode both[] = {b, c};
    CODE(cuGraphAddEmptyNode(&d, graph, both, 2));
    CODE(cuGraphAddEmptyNode(&e, graph, nullptr, 0));
  }
};

void Edges(CUgraph graph) {
  const auto marker = reinterpret_cast<CUgraphNode>(0x77);
  for (size_t room : {0, 1, 4, 8}) {
    for (bool with_data : {false, true}) {
      CUgraphNode from[kRoom], to[kRoom];
      CUgraphEdgeData data[kRoom] = {};
      for (auto& node : from) node = marker;
      for (auto& node : to) node = marker;
      size_t count = room;
      CUresult result = cuGraphGetEdges(graph, from, to, with_data ? data : nullptr, &count);
      std::printf("graph_lists.cc:edges with room for %zu, data %d = %d, %zu\n", room, with_data,
                  result, count);
      PrintEntries("edges' sources", from, marker);
      PrintEntries("edges' targets", to, marker);
    }
  }
  CUgraphNode nodes[kRoom];
  size_t count = kRoom;
  CODE(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  VALUE(count);
  CODE(cuGraphGetEdges(graph, nodes, nullptr, nullptr, &count));
  CODE(cuGraphGetEdges(graph, nullptr, nodes, nullptr, &count));
  CODE(cuGraphGetEdges(graph, nodes, nodes, nullptr, nullptr));
}

}  // namespace

void GraphLists() {
  InContext in;
  Diamond made;
  EachRoom("cuGraphGetNodes", [&](CUgraphNode* nodes, size_t* count) {
    return cuGraphGetNodes(made.graph, nodes, count);
  });
  EachRoom("cuGraphGetRootNodes", [&](CUgraphNode* nodes, size_t* count) {
    return cuGraphGetRootNodes(made.graph, nodes, count);
  });
  for (CUgraphNode node : {made.a, made.b, made.d, made.e}) {
    EachRoom("cuGraphNodeGetDependencies", [node](CUgraphNode* nodes, size_t* count) {
      return cuGraphNodeGetDependencies(node, nodes, nullptr, count);
    });
    EachRoom("cuGraphNodeGetDependentNodes", [node](CUgraphNode* nodes, size_t* count) {
      return cuGraphNodeGetDependentNodes(node, nodes, nullptr, count);
    });
    EachRoom("dependencies with data", [node](CUgraphNode* nodes, size_t* count) {
      CUgraphEdgeData data[kRoom] = {};
      return cuGraphNodeGetDependencies(node, nodes, data, count);
    });
  }
  Edges(made.graph);
  CUgraph empty = nullptr;
  CODE(cuGraphCreate(&empty, 0));
  EachRoom("nodes of an empty graph", [empty](CUgraphNode* nodes, size_t* count) {
    return cuGraphGetNodes(empty, nodes, count);
  });
  EachRoom("roots of an empty graph", [empty](CUgraphNode* nodes, size_t* count) {
    return cuGraphGetRootNodes(empty, nodes, count);
  });
  CODE(cuGraphGetNodes(empty, nullptr, nullptr));
  CODE(cuGraphGetRootNodes(empty, nullptr, nullptr));
  size_t count = 0;
  CODE(cuGraphGetNodes(nullptr, nullptr, &count));
  CODE(cuGraphGetRootNodes(nullptr, nullptr, &count));
  CODE(cuGraphNodeGetDependencies(nullptr, nullptr, nullptr, &count));
  CODE(cuGraphNodeGetDependentNodes(nullptr, nullptr, nullptr, &count));
  CODE(cuGraphDestroy(empty));
  CODE(cuGraphDestroy(made.graph));
}

}  // namespace conformance
