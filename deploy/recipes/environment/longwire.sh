# Sourced when an environment is activated: its programs find Longwire's libcuda.so.1, and need no
# `longwire run`. Say where the client is installed, and which server, before; or edit the defaults.
: "${LONGWIRE_HOME:=/usr}"
: "${LONGWIRE_SERVER:=gpu1.example.org:7411}"
export LONGWIRE_SERVER
LONGWIRE_LIBRARIES=$LONGWIRE_HOME/lib/longwire
case ":${LD_LIBRARY_PATH:-}:" in
  *":$LONGWIRE_LIBRARIES:"*) ;;
  *) export LD_LIBRARY_PATH="$LONGWIRE_LIBRARIES${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;;
esac
# Triton and Numba look for the driver by ways of their own; NCCL needs to know that devices of one
# server are near each other.
export TRITON_LIBCUDA_PATH=$LONGWIRE_LIBRARIES
export NUMBA_CUDA_DRIVER=$LONGWIRE_LIBRARIES/libcuda.so.1
export NCCL_P2P_LEVEL=${NCCL_P2P_LEVEL:-SYS}
