// Three steps of a gravity simulation; bodies are exchanged through shared memory. The host
// integrates the same in double.
#include <cmath>
#include <vector>

#include "check.h"

constexpr int kBodies = 256, kThreads = 64, kSteps = 3;
constexpr float kSoftening = 0.01f, kStep = 0.01f;

__global__ void Step(const float4* position, float4* next, float4* velocity) {
  __shared__ float4 tile[kThreads];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 mine = position[i];
  float3 force = make_float3(0, 0, 0);
  for (int first = 0; first < kBodies; first += kThreads) {
    tile[threadIdx.x] = position[first + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < kThreads; ++k) {
      const float dx = tile[k].x - mine.x, dy = tile[k].y - mine.y, dz = tile[k].z - mine.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + kSoftening);
      const float strength = tile[k].w * inverse * inverse * inverse;
      force.x += strength * dx;
      force.y += strength * dy;
      force.z += strength * dz;
    }
    __syncthreads();
  }
  float4 v = velocity[i];
  v.x += kStep * force.x;
  v.y += kStep * force.y;
  v.z += kStep * force.z;
  velocity[i] = v;
  next[i] = make_float4(mine.x + kStep * v.x, mine.y + kStep * v.y, mine.z + kStep * v.z, mine.w);
}

static void HostStep(std::vector<double>& p, std::vector<double>& v, const float4* bodies) {
  const std::vector<double> old = p;
  for (int i = 0; i < kBodies; ++i) {
    double force[3] = {0, 0, 0};
    for (int k = 0; k < kBodies; ++k) {
      double d[3], square = kSoftening;
      for (int axis = 0; axis < 3; ++axis) {
        d[axis] = old[k * 3 + axis] - old[i * 3 + axis];
        square += d[axis] * d[axis];
      }
      const double strength = bodies[k].w / (square * std::sqrt(square));
      for (int axis = 0; axis < 3; ++axis) force[axis] += strength * d[axis];
    }
    for (int axis = 0; axis < 3; ++axis) {
      v[i * 3 + axis] += kStep * force[axis];
      p[i * 3 + axis] = old[i * 3 + axis] + kStep * v[i * 3 + axis];
    }
  }
}

int main() {
  std::vector<float4> bodies(kBodies);
  std::vector<double> p(kBodies * 3), v(kBodies * 3, 0.0);
  for (int i = 0; i < kBodies; ++i) {
    bodies[i] = make_float4((i * 71 % 101) / 50.0f - 1, (i * 37 % 103) / 51.0f - 1,
                            (i * 17 % 107) / 53.0f - 1, 0.5f + (i % 5) * 0.1f);
    p[i * 3] = bodies[i].x;
    p[i * 3 + 1] = bodies[i].y;
    p[i * 3 + 2] = bodies[i].z;
  }
  const size_t bytes = kBodies * sizeof(float4);
  float4 *position, *next, *velocity;
  CHECK(cudaMalloc(&position, bytes));
  CHECK(cudaMalloc(&next, bytes));
  CHECK(cudaMalloc(&velocity, bytes));
  CHECK(cudaMemcpy(position, bodies.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(velocity, 0, bytes));
  for (int step = 0; step < kSteps; ++step) {
    Step<<<kBodies / kThreads, kThreads>>>(position, next, velocity);
    CHECK(cudaGetLastError());
    float4* swapped = position;
    position = next;
    next = swapped;
    HostStep(p, v, bodies.data());
  }
  std::vector<float4> result(kBodies);
  CHECK(cudaMemcpy(result.data(), position, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kBodies; ++i) {
    const double distance = std::fabs(result[i].x - p[i * 3]) +
                            std::fabs(result[i].y - p[i * 3 + 1]) +
                            std::fabs(result[i].z - p[i * 3 + 2]);
    EXPECT(distance < 1e-3, "body %d is %g away from the host's", i, distance);
  }
  CHECK(cudaFree(position));
  CHECK(cudaFree(next));
  CHECK(cudaFree(velocity));
  return Pass("nbody");
}
