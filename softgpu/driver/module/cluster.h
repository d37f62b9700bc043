// Clusters of blocks: what a function asks for, what a launch may have, and how many fit.
#pragma once

#include "softgpu/driver/module/module.h"

namespace softgpu {

// Fills in config->cluster from the function where the launch says nothing, and refuses what the
// driver refuses at once.
CUresult ChooseCluster(const Function& function, LaunchConfig* config);
// Only what the program set for the function, unless it was compiled for clusters of one size.
CUresult TakeRequired(const Function& function, LaunchConfig* config);

void ReadCluster(const CUlaunchAttributeValue& value, LaunchConfig* config);
int ClusterBlocks(const LaunchConfig& config);  // at least 1

// A function's attributes from CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET on.
CUresult GetClusterAttribute(int* value, CUfunction_attribute attribute, const Function& function);
CUresult SetClusterAttribute(Function& function, CUfunction_attribute attribute, int value);

}  // namespace softgpu
