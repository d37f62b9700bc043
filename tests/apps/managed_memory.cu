// Managed memory that obeys the rules for devices without concurrent access: both sides use the
// same addresses, each sees what the other wrote, byte by byte.
#include <cuda_runtime.h>

#include <cstring>
#include <vector>

#include "check.h"

struct Node {
  int value;
  Node* next;
};

__managed__ int counter = 5;
__managed__ float table[300];

__global__ void AddToAll(int* values, int count, int amount) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += amount;
}

__global__ void WalkList(const Node* head, int* sum) {
  for (const Node* node = head; node != nullptr; node = node->next) *sum += node->value;
}

__global__ void AppendToList(Node* tail, Node* fresh) {
  fresh->value = tail->value * 10;
  fresh->next = nullptr;
  tail->next = fresh;
}

__global__ void WriteOddBytes(unsigned char* bytes, int count, int value) {
  for (int i = 1; i < count; i += 2) bytes[i] = static_cast<unsigned char>(value);
}

__global__ void UseVariables() {
  counter += 1;
  for (int i = 0; i < 300; ++i) table[i] += 0.5f;
}

static void SimpleRound() {
  const int count = 5000;
  int* values = nullptr;
  CHECK(cudaMallocManaged(&values, count * sizeof(int)));
  for (int i = 0; i < count; ++i) values[i] = i;
  for (int round = 1; round <= 3; ++round) {
    AddToAll<<<(count + 255) / 256, 256>>>(values, count, 1000);
    AddToAll<<<(count + 255) / 256, 256>>>(values, count, -1);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) {
      EXPECT(values[i] == i + round * 999 + (round - 1) * 7, "element %d is %d", i, values[i]);
      values[i] += 7;
    }
  }
  CHECK(cudaFree(values));
}

static Node* NewNode(int value, Node* next) {
  Node* node = nullptr;
  CHECK(cudaMallocManaged(&node, sizeof(Node)));
  node->value = value;
  node->next = next;
  return node;
}

static void LinkedList() {
  Node* head = nullptr;
  for (int i = 1; i <= 200; ++i) head = NewNode(i, head);
  int* sum = nullptr;
  CHECK(cudaMallocManaged(&sum, sizeof *sum));
  *sum = 0;
  WalkList<<<1, 1>>>(head, sum);
  CHECK(cudaDeviceSynchronize());
  EXPECT(*sum == 200 * 201 / 2, "the device's walk gave %d", *sum);
  Node* tail = head;
  while (tail->next != nullptr) tail = tail->next;
  Node* fresh = NewNode(0, nullptr);
  AppendToList<<<1, 1>>>(tail, fresh);
  CHECK(cudaDeviceSynchronize());
  EXPECT(tail->next == fresh && fresh->value == tail->value * 10, "the device's node is missing");
  while (head != nullptr) {
    Node* next = head->next;
    CHECK(cudaFree(head));
    head = next;
  }
  CHECK(cudaFree(sum));
}

static void BytesOfOnePage() {
  const int count = 4096;
  unsigned char* bytes = nullptr;
  CHECK(cudaMallocManaged(&bytes, count));
  std::memset(bytes, 0, count);
  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < count; i += 2) bytes[i] = static_cast<unsigned char>(100 + round);
    WriteOddBytes<<<1, 1>>>(bytes, count, round);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) {
      const int expected = i % 2 == 0 ? 100 + round : round;
      EXPECT(bytes[i] == expected, "round %d: byte %d is %d", round, i, bytes[i]);
    }
  }
  CHECK(cudaFree(bytes));
}

static void Variables() {
  EXPECT(counter == 5, "the variable's first value is %d", counter);
  counter = 10;
  for (int i = 0; i < 300; ++i) table[i] = static_cast<float>(i);
  UseVariables<<<1, 1>>>();
  UseVariables<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  EXPECT(counter == 12, "the variable is %d", counter);
  for (int i = 0; i < 300; ++i) EXPECT(table[i] == i + 1.0f, "table[%d] is %f", i, table[i]);
  AddToAll<<<1, 1>>>(&counter, 1, 30);
  CHECK(cudaDeviceSynchronize());
  EXPECT(counter == 42, "through its address the variable became %d", counter);
}

static void LargeRangeWithFewChanges() {
  const size_t count = size_t{8} << 20;  // 32 MiB
  int* values = nullptr;
  CHECK(cudaMallocManaged(&values, count * sizeof(int)));
  for (size_t i = 0; i < count; i += 100001) {
    values[i] = static_cast<int>(i);
    AddToAll<<<1, 1>>>(values + i, 1, 1);
    if (i % 3 == 0) CHECK(cudaDeviceSynchronize());
    CHECK(cudaDeviceSynchronize());
  }
  for (size_t i = 0; i < count; ++i) {
    const int expected = i % 100001 == 0 ? static_cast<int>(i) + 1 : 0;
    EXPECT(values[i] == expected || i % 100001 != 0, "element %zu is %d", i, values[i]);
  }
  CHECK(cudaFree(values));
}

int main() {
  int managed = 0;
  CHECK(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, 0));
  EXPECT(managed == 1, "the device says it has no managed memory");
  SimpleRound();
  LinkedList();
  BytesOfOnePage();
  Variables();
  LargeRangeWithFewChanges();
  return Pass("managed_memory");
}
