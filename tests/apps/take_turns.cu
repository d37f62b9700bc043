// For the tests of swapping: holds memory with a linked list through all of it, and follows that
// list on request. Arguments: the bytes in all, and of each allocation. Lines of its input, each
// answered by one of output:
//   turn     a kernel follows the list, expects the marks of the last turn and leaves its own
//   check    every byte is what it was filled with, list and marks apart
//   busy     a kernel runs until told otherwise
//   release  it ends, and the line comes when it has ended
//   more N   allocates N bytes more, which have to be zeros
//   wait     waits for all that the device has to do
// Anything else ends the program.
#include <cstring>
#include <string>
#include <vector>

#include "check.h"

struct Node {
  Node* next;
  unsigned long long turns;
};

struct Result {
  unsigned long long nodes;
  unsigned long long wrong;
};

__global__ void Follow(Node* node, unsigned long long turns, Result* result) {
  for (; node != nullptr; node = node->next) {
    result->nodes += 1;
    result->wrong += node->turns != turns;
    node->turns = turns + 1;
  }
}

__global__ void Spin(volatile int* go_on) {
  while (*go_on != 0) {
  }
}

namespace {

constexpr size_t kStep = 1 << 20;  // bytes from node to node

std::vector<char*> pieces;
size_t piece_bytes = 0;
unsigned long long turns = 0;
Result* result = nullptr;
int* go_on = nullptr;
cudaStream_t spinning, other;

std::vector<unsigned> Filling(size_t piece) {
  std::vector<unsigned> words(piece_bytes / sizeof(unsigned));
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<unsigned>((i + piece * 7919) * 2654435761u + 12345u);
  }
  return words;
}

void Fill(size_t bytes) {
  for (size_t i = 0; i < bytes / piece_bytes; ++i) {
    char* piece = nullptr;
    CHECK(cudaMalloc(&piece, piece_bytes));
    CHECK(cudaMemcpy(piece, Filling(i).data(), piece_bytes, cudaMemcpyHostToDevice));
    pieces.push_back(piece);
  }
  Node* next = nullptr;
  for (size_t i = pieces.size(); i-- > 0;) {
    for (size_t at = piece_bytes / kStep * kStep; at > 0;) {
      at -= kStep;
      Node node{next, 0};
      CHECK(cudaMemcpy(pieces[i] + at, &node, sizeof node, cudaMemcpyHostToDevice));
      next = reinterpret_cast<Node*>(pieces[i] + at);
    }
  }
  CHECK(cudaMalloc(&result, sizeof *result));
  CHECK(cudaMalloc(&go_on, sizeof *go_on));
  CHECK(cudaStreamCreateWithFlags(&spinning, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
}

void Turn() {
  CHECK(cudaMemset(result, 0, sizeof *result));
  Follow<<<1, 1>>>(reinterpret_cast<Node*>(pieces[0]), turns++, result);
  Result host;
  CHECK(cudaMemcpy(&host, result, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host.wrong == 0, "%llu of %llu nodes are wrong", host.wrong, host.nodes);
  EXPECT(host.nodes == pieces.size() * (piece_bytes / kStep), "%llu nodes", host.nodes);
  std::printf("turn %llu of %llu nodes\n", turns, host.nodes);
}

void CheckAll() {
  std::vector<unsigned> words(piece_bytes / sizeof(unsigned));
  for (size_t i = 0; i < pieces.size(); ++i) {
    CHECK(cudaMemcpy(words.data(), pieces[i], piece_bytes, cudaMemcpyDeviceToHost));
    std::vector<unsigned> expected = Filling(i);
    size_t wrong = 0;
    constexpr size_t kHead = sizeof(Node) / sizeof(unsigned);
    for (size_t at = 0; at < words.size(); ++at) {
      if (at % (kStep / sizeof(unsigned)) >= kHead) wrong += words[at] != expected[at];
    }
    EXPECT(wrong == 0, "%zu words of piece %zu are wrong", wrong, i);
  }
  std::printf("checked %zu bytes\n", pieces.size() * piece_bytes);
}

void More(size_t bytes) {
  void* memory = nullptr;
  cudaError_t code = cudaMalloc(&memory, bytes);
  if (code == cudaSuccess) {
    std::vector<unsigned char> host(bytes);
    CHECK(cudaMemcpy(host.data(), memory, bytes, cudaMemcpyDeviceToHost));
    size_t others = 0;
    for (unsigned char byte : host) others += byte != 0;
    EXPECT(others == 0, "%zu of %zu bytes are another's", others, bytes);
  }
  std::printf("more %s\n", cudaGetErrorName(code));
}

bool Do(const std::string& line) {
  if (line == "turn") {
    Turn();
  } else if (line == "check") {
    CheckAll();
  } else if (line == "busy") {
    const int yes = 1;
    CHECK(cudaMemcpy(go_on, &yes, sizeof yes, cudaMemcpyHostToDevice));
    Spin<<<1, 1, 0, spinning>>>(go_on);
    CHECK(cudaGetLastError());
    std::printf("busy\n");
  } else if (line == "release") {
    CHECK(cudaMemsetAsync(go_on, 0, sizeof *go_on, other));
    CHECK(cudaStreamSynchronize(other));
    CHECK(cudaStreamSynchronize(spinning));
    std::printf("released\n");
  } else if (line.rfind("more ", 0) == 0) {
    More(std::strtoull(line.c_str() + 5, nullptr, 10));
  } else if (line == "wait") {
    std::printf("waited %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  } else {
    return false;
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  EXPECT(count == 3, "two numbers are needed");
  piece_bytes = std::strtoull(arguments[2], nullptr, 10);
  Fill(std::strtoull(arguments[1], nullptr, 10));
  CHECK(cudaDeviceSynchronize());
  std::printf("READY\n");
  std::fflush(stdout);
  char line[64] = "";
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    if (!Do(line)) break;
    std::fflush(stdout);
  }
  return Pass("take_turns");
}
