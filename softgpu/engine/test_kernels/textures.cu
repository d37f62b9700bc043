// Every function that reads a texture or surface, of every kind of element that nvcc has another
// instruction for. What they give is compared elsewhere; `Values` holds what a test looks at.

template <class T>
__device__ void ReadLines(cudaTextureObject_t texture, T* out, float at, float step, int layer) {
  *out++ = tex1Dfetch<T>(texture, layer);
  *out++ = tex1D<T>(texture, at);
  *out++ = tex1DLod<T>(texture, at, step);
  *out++ = tex1DGrad<T>(texture, at, step, step);
  *out++ = tex1DLayered<T>(texture, at, layer);
  *out++ = tex1DLayeredLod<T>(texture, at, layer, step);
  *out++ = tex1DLayeredGrad<T>(texture, at, layer, step, step);
}

template <class T>
__device__ void ReadPlanes(cudaTextureObject_t texture, T* out, float at, float2 step, int layer) {
  bool resident[6];
  *out++ = tex2D<T>(texture, at, at);
  *out++ = tex2DLod<T>(texture, at, at, step.x);
  *out++ = tex2DGrad<T>(texture, at, at, step, step);
  *out++ = tex2DLayered<T>(texture, at, at, layer);
  *out++ = tex2DLayeredLod<T>(texture, at, at, layer, step.x);
  *out++ = tex2DLayeredGrad<T>(texture, at, at, layer, step, step);
  *out++ = tex2D<T>(texture, at, at, resident);
  *out++ = tex2DLod<T>(texture, at, at, step.x, resident + 1);
  *out++ = tex2DGrad<T>(texture, at, at, step, step, resident + 2);
  *out++ = tex2DLayered<T>(texture, at, at, layer, resident + 3);
  *out++ = tex2DLayeredLod<T>(texture, at, at, layer, step.x, resident + 4);
  *out++ = tex2DLayeredGrad<T>(texture, at, at, layer, step, step, resident + 5);
  for (bool one : resident) {
    if (!one) *out = T{};  // makes the answers needed
  }
}

template <class T>
__device__ void ReadSolids(cudaTextureObject_t texture, T* out, float at, float4 step, int layer) {
  *out++ = tex3D<T>(texture, at, at, at);
  *out++ = tex3DLod<T>(texture, at, at, at, step.x);
  *out++ = tex3DGrad<T>(texture, at, at, at, step, step);
  *out++ = texCubemap<T>(texture, at, 1, at);
  *out++ = texCubemapLod<T>(texture, at, 1, at, step.x);
  *out++ = texCubemapGrad<T>(texture, at, 1, at, step, step);
  *out++ = texCubemapLayered<T>(texture, at, 1, at, layer);
  *out++ = texCubemapLayeredLod<T>(texture, at, 1, at, layer, step.x);
  *out++ = texCubemapLayeredGrad<T>(texture, at, 1, at, layer, step, step);
}

template <class T>
__device__ void ReadGathered(cudaTextureObject_t texture, T* out, float at) {
  bool resident = false;
  *out++ = tex2Dgather<T>(texture, at, at, 0);
  *out++ = tex2Dgather<T>(texture, at, at, 1);
  *out++ = tex2Dgather<T>(texture, at, at, 2);
  *out++ = tex2Dgather<T>(texture, at, at, 3);
  *out++ = tex2Dgather<T>(texture, at, at, &resident, 0);
  if (!resident) *out = T{};
}

#define READ(T)                                                                        \
  extern "C" __global__ void Read_##T(cudaTextureObject_t texture, T* out, float at) { \
    ReadLines<T>(texture, out, at, at / 2, 1);                                         \
    ReadPlanes<T>(texture, out, at, make_float2(at / 2, at), 1);                       \
    ReadSolids<T>(texture, out, at, make_float4(at / 2, at, at, 0), 1);                \
  }
READ(float)
READ(float4)
READ(int2)
READ(uint)
READ(char4)
READ(ushort)

#define GATHER(T)                                                                        \
  extern "C" __global__ void Gather_##T(cudaTextureObject_t texture, T* out, float at) { \
    ReadGathered<T>(texture, out, at);                                                   \
  }
GATHER(float4)
GATHER(int4)
GATHER(uchar4)

// Moves elements by one, so that each access is kept.
template <class T, cudaSurfaceBoundaryMode mode>
__device__ void MoveElements(cudaSurfaceObject_t surface, int x) {
  surf1Dwrite(surf1Dread<T>(surface, x, mode), surface, x + int(sizeof(T)), mode);
  surf2Dwrite(surf2Dread<T>(surface, x, 1, mode), surface, x, 2, mode);
  surf3Dwrite(surf3Dread<T>(surface, x, 1, 1, mode), surface, x, 1, 2, mode);
  surf1DLayeredwrite(surf1DLayeredread<T>(surface, x, 1, mode), surface, x, 2, mode);
  surf2DLayeredwrite(surf2DLayeredread<T>(surface, x, 1, 1, mode), surface, x, 1, 2, mode);
  surfCubemapwrite(surfCubemapread<T>(surface, x, 1, 3, mode), surface, x, 1, 4, mode);
  surfCubemapLayeredwrite(surfCubemapLayeredread<T>(surface, x, 1, 9, mode), surface, x, 1, 10,
                          mode);
}

#define MOVE(T)                                                             \
  extern "C" __global__ void Move_##T(cudaSurfaceObject_t surface, int x) { \
    MoveElements<T, cudaBoundaryModeTrap>(surface, x * int(sizeof(T)));     \
    MoveElements<T, cudaBoundaryModeClamp>(surface, x * int(sizeof(T)));    \
    MoveElements<T, cudaBoundaryModeZero>(surface, x * int(sizeof(T)));     \
  }
MOVE(char)
MOVE(uchar2)
MOVE(uchar4)
MOVE(short)
MOVE(short2)
MOVE(ushort4)
MOVE(int)
MOVE(float2)
MOVE(float4)
MOVE(longlong1)
MOVE(ulonglong2)

// Each lane reads its own place; out[lane] of the first row, out[32 + lane] of the next, and so on.
extern "C" __global__ void Values(cudaTextureObject_t cube, cudaTextureObject_t plane,
                                  cudaTextureObject_t levels, float* out) {
  const int lane = threadIdx.x;
  const float turn = float(lane) / 4 - 4;
  out[lane] = texCubemapLayered<float>(cube, turn, 1.5f, -2, lane % 2);
  const float4 four = tex2Dgather<float4>(plane, float(lane) / 8, 2, lane % 2);
  out[32 + lane] = four.x + 10 * four.y + 100 * four.z + 1000 * four.w;
  const float step = float(1 << lane % 4) / 8;
  out[64 + lane] = tex2DGrad<float>(levels, 0.5f, 0.5f, make_float2(step, 0), make_float2(0, 0));
  bool resident = false;
  if (lane % 3 != 0) out[96 + lane] = tex2D<float>(plane, 0, 0, &resident);
  out[96 + lane] = resident;
}
