// Checked cuBLAS calls.
#pragma once

#include <cublas_v2.h>

#include "check.h"

#define CHECK_CUBLAS(call)                                             \
  do {                                                                 \
    const cublasStatus_t check_status = (call);                        \
    EXPECT(check_status == CUBLAS_STATUS_SUCCESS, "%s gave %d", #call, \
           static_cast<int>(check_status));                            \
  } while (false)
