// cuDNN: an image convolved with a filter that takes the mean of 3 x 3, and softmax of a row.
#include <cudnn.h>

#include <cmath>

#include "library_check.h"

constexpr int kSize = 64;

static cudnnTensorDescriptor_t Tensor(int channels, int height, int width) {
  cudnnTensorDescriptor_t tensor;
  CHECK_LIBRARY(cudnnCreateTensorDescriptor(&tensor));
  CHECK_LIBRARY(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, channels,
                                           height, width));
  return tensor;
}

static void Convolve(cudnnHandle_t handle) {
  std::vector<float> image(kSize * kSize);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i * 7 % 31);
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t convolution;
  CHECK_LIBRARY(cudnnCreateFilterDescriptor(&filter));
  CHECK_LIBRARY(
      cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 3, 3));
  CHECK_LIBRARY(cudnnCreateConvolutionDescriptor(&convolution));
  CHECK_LIBRARY(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1,
                                                CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  const auto tensor = Tensor(1, kSize, kSize);
  constexpr auto kAlgorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  size_t size = 0;
  CHECK_LIBRARY(cudnnGetConvolutionForwardWorkspaceSize(handle, tensor, filter, convolution, tensor,
                                                        kAlgorithm, &size));
  void* workspace;
  CHECK(cudaMalloc(&workspace, size + 1));
  float* out = ToDevice(image);
  const float one = 1, zero = 0;
  CHECK_LIBRARY(cudnnConvolutionForward(handle, &one, tensor, ToDevice(image), filter,
                                        ToDevice(std::vector<float>(9, 1.0f / 9)), convolution,
                                        kAlgorithm, workspace, size, &zero, tensor, out));
  const std::vector<float> means = ToHost(out, image.size());
  float sum = 0;
  for (int row = 4; row <= 6; ++row) {
    for (int column = 9; column <= 11; ++column) sum += image[row * kSize + column];
  }
  const float got = means[5 * kSize + 10];
  EXPECT(std::fabs(got - sum / 9) < 1e-4, "%g instead of %g", got, sum / 9);
  PrintHash("means", means);
}

static void Softmax(cudnnHandle_t handle) {
  std::vector<float> row(1000);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 10);
  const auto tensor = Tensor(1000, 1, 1);
  float* out = ToDevice(row);
  const float one = 1, zero = 0;
  CHECK_LIBRARY(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL,
                                    &one, tensor, ToDevice(row), &zero, tensor, out));
  const std::vector<float> shares = ToHost(out, row.size());
  double sum = 0;
  for (float share : shares) sum += share;
  EXPECT(std::fabs(sum - 1) < 1e-5, "the sum is %g", sum);
  PrintHash("softmax", shares);
}

int main() {
  cudnnHandle_t handle;
  CHECK_LIBRARY(cudnnCreate(&handle));
  Convolve(handle);
  Softmax(handle);
  CHECK_LIBRARY(cudnnDestroy(handle));
  return Pass("cudnn_convolution");
}
