// A keeper and a worker: one process owns a chunk, another maps it by descriptor.
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "softgpu/driver/test_device.h"

namespace softgpu {
namespace {

void Send(int socket, int fd) {
  char byte = 0, control[CMSG_SPACE(sizeof fd)] = {};
  iovec data{&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(header), &fd, sizeof fd);
  ASSERT_EQ(sendmsg(socket, &message, 0), 1);
}

int Receive(int socket) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {};
  iovec data{&byte, 1};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket, &message, 0) != 1) return -1;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) return -1;
  int fd = -1;
  memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

class SharingTest : public DeviceTest {
 protected:
  void SetUp() override {
    int count = 0;
    if (cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED) {
      GTEST_SKIP() << "the device is in use already: a child would not be able to use it";
    }
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_), 0);
  }
  // Both processes start CUDA after the fork. The child ends here, whatever happens in it.
  void StartWorker() {
    child_ = fork();
    ASSERT_GE(child_, 0);
    if (child_ != 0) return;
    alarm(30);  // seconds, in case the keeper fails
    DeviceTest::SetUp();
    if (!HasFailure()) Worker();
    _exit(HasFailure() ? 1 : 0);
  }
  CUdeviceptr MapChunk(CUmemGenericAllocationHandle handle) {
    CUdeviceptr at = 0;
    auto access = ReadWrite();
    EXPECT_CU(cuMemAddressReserve(&at, kChunk, 0, 0, 0));
    EXPECT_CU(cuMemMap(at, kChunk, 0, handle, 0));
    EXPECT_CU(cuMemSetAccess(at, kChunk, &access, 1));
    return at;
  }
  void Keeper() {
    CUmemGenericAllocationHandle handle = 0;
    auto properties = ChunkProperties();
    ASSERT_CU(cuMemCreate(&handle, kChunk, &properties, 0));
    CUdeviceptr at = MapChunk(handle);
    ASSERT_CU(cuMemsetD32(at, 0x11111111, kChunk / 4));
    ASSERT_CU(cuCtxSynchronize());
    int fd = -1;
    ASSERT_CU(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    Send(sockets_[0], fd);
    close(fd);
    int status = 0;
    ASSERT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
    uint32_t value = 0;
    ASSERT_CU(cuMemcpyDtoH(&value, at + 8, 4));
    EXPECT_EQ(value, 0x22222222u);
  }
  void Worker() {
    int fd = Receive(sockets_[1]);
    CUmemGenericAllocationHandle handle = 0;
    size_t free_before = 0, free_after = 0, total = 0;
    ASSERT_CU(cuMemGetInfo(&free_before, &total));
    ASSERT_CU(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t{fd}),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    CUdeviceptr at = MapChunk(handle);
    ASSERT_CU(cuMemRelease(handle));
    ASSERT_CU(cuMemGetInfo(&free_after, &total));
    EXPECT_EQ(free_before, free_after);  // the keeper's total, not this process's
    uint32_t value = 0;
    ASSERT_CU(cuMemcpyDtoH(&value, at + kChunk - 4, 4));
    EXPECT_EQ(value, 0x11111111u);
    CUdeviceptr target = at + 8;
    unsigned stored = 0x22222222;
    void* parameters[] = {&target, &stored};
    ASSERT_CU(cuLaunchKernel(Function(LoadKernels(), "Store"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             parameters, nullptr));
    ASSERT_CU(cuCtxSynchronize());
  }

  int sockets_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST_F(SharingTest, AChunkIsSharedByDescriptor) {
  StartWorker();
  // NOLINTNEXTLINE(bugprone-parent-virtual-call): CUDA starts here, after the fork
  DeviceTest::SetUp();
  ASSERT_FALSE(HasFatalFailure());
  Keeper();
}

class ForeignTest : public DeviceTest {};

TEST_F(ForeignTest, ForeignDescriptorsAreRefused) {
  CUmemGenericAllocationHandle handle = 0;
  auto import = [&](int fd) {
    return cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t{fd}),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  };
  EXPECT_EQ(import(-1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(import(0), CUDA_ERROR_INVALID_VALUE);
  int unsealed = memfd_create("unsealed", MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(unsealed, kChunk), 0);
  EXPECT_EQ(import(unsealed), CUDA_ERROR_INVALID_VALUE);
  close(unsealed);
}

}  // namespace
}  // namespace softgpu
