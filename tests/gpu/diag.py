import sys,pathlib,subprocess,time,json
sys.path[:0]=['bench','tests/e2e']
import tenants
b=pathlib.Path(sys.argv[1]).resolve(); count=int(sys.argv[2])
blocks={"one":{"weight":1,"devices":count},"three":{"weight":3,"devices":count},"operator":{"admin":True}}
with tenants.TenantServer(blocks,{"software_device":{"count":count,"memory":"1GiB"},"scheduler":{"policy":"weighted_fair","turn":"5ms"}},build=b,driver=sys.argv[3],warm_workers=0,software_devices=count) as s:
    ps=[subprocess.Popen(s.command(b/"tests/apps/all_devices.static"),text=True,env=s.environment_of(n,LONGWIRE_DEVICES=count),stdin=subprocess.PIPE,stdout=subprocess.PIPE) for n in ("one","three")]
    for p in ps:p.stdout.readline()
    t0=time.time()
    while time.time()-t0<4:
        st=s.status_as("operator"); sc=st["scheduler"]
        print(round(time.time()-t0,3),sc["turns"],sc["overruns"],[[(x.get("closed"),x.get("busy"),round(x.get("gpu_seconds",0),3),x.get("calls"),x.get("held")) for x in ss["seats"]] for ss in st["sessions"]])
    print(json.dumps(st["sessions"][0]["seats"]))
    for p in ps:p.stdin.close()
    print([p.stdout.read().split()[-3:] for p in ps])
    print(s.log_tail())
