// Constant memory and device variables, by symbol: whole, in part, with offsets and by address.
#include <vector>

#include "check.h"

__constant__ float coefficients[16];
__constant__ int initialised[4] = {11, 22, 33, 44};
__device__ int table[64];
__device__ double scale = 2.5;

__global__ void Evaluate(float* output, int* from_table) {
  const int i = threadIdx.x;
  float value = 0;
  for (int k = 15; k >= 0; --k) value = value * 0.5f + coefficients[k];
  output[i] = value * i + initialised[i % 4] + static_cast<float>(scale);
  from_table[i] = table[i];
  table[i] = table[i] * 2 + 1;
}

int main() {
  float host_coefficients[16], value = 0;
  int host_table[64];
  for (int i = 0; i < 16; ++i) host_coefficients[i] = static_cast<float>(i + 1);
  for (int i = 0; i < 64; ++i) host_table[i] = 1000 + i;
  CHECK(cudaMemcpyToSymbol(coefficients, host_coefficients, sizeof host_coefficients));
  CHECK(cudaMemcpyToSymbol(table, host_table, sizeof host_table));
  const int replacement = 77;
  CHECK(cudaMemcpyToSymbol(initialised, &replacement, sizeof(int), 2 * sizeof(int)));
  CHECK(cudaMemcpyToSymbolAsync(table, &replacement, sizeof(int), 5 * sizeof(int)));
  double host_scale = 0;
  CHECK(cudaMemcpyFromSymbol(&host_scale, scale, sizeof host_scale));
  EXPECT(host_scale == 2.5, "the initial value came back as %g", host_scale);
  host_scale = 4.0;
  CHECK(cudaMemcpyToSymbol(scale, &host_scale, sizeof host_scale));

  float* output;
  int* from_table;
  CHECK(cudaMalloc(&output, 64 * sizeof(float)));
  CHECK(cudaMalloc(&from_table, 64 * sizeof(int)));
  Evaluate<<<1, 64>>>(output, from_table);
  CHECK(cudaGetLastError());
  float outputs[64];
  int tables[64];
  CHECK(cudaMemcpy(outputs, output, sizeof outputs, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(tables, from_table, sizeof tables, cudaMemcpyDeviceToHost));
  host_table[5] = replacement;
  for (int k = 15; k >= 0; --k) value = value * 0.5f + host_coefficients[k];
  const int now[4] = {11, 22, 77, 44};
  for (int i = 0; i < 64; ++i) {
    const float expected = value * i + now[i % 4] + 4.0f;
    const float difference = outputs[i] - expected;
    EXPECT(difference < 1e-3f && difference > -1e-3f, "output %d is %g, not %g", i, outputs[i],
           expected);
    EXPECT(tables[i] == host_table[i], "table %d was %d", i, tables[i]);
  }
  void* address = nullptr;
  size_t size = 0;
  CHECK(cudaGetSymbolAddress(&address, table));
  CHECK(cudaGetSymbolSize(&size, table));
  EXPECT(size == sizeof host_table, "the symbol has %zu bytes", size);
  CHECK(cudaMemcpy(tables, address, sizeof tables, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) {
    EXPECT(tables[i] == host_table[i] * 2 + 1, "table %d became %d", i, tables[i]);
  }
  CHECK(cudaMemcpyFromSymbol(tables, table, 3 * sizeof(int), 10 * sizeof(int)));
  EXPECT(tables[0] == host_table[10] * 2 + 1, "read at an offset: %d", tables[0]);
  CHECK(cudaFree(output));
  CHECK(cudaFree(from_table));
  return Pass("constant_symbols");
}
