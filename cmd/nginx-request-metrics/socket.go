package main

import (
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/prometheus/procfs"
)

const (
	receiveBuffer  = 8 << 20 // net.core.rmem_max of the node bounds it
	longestMessage = 16 << 10
)

// socket receives datagrams. It is nil while the port is not open.
type socket struct{ atomic.Pointer[net.UDPConn] }

// receive passes each datagram to record, until an error.
func (s *socket) receive(log *slog.Logger, address string, record func(datagram []byte)) error {
	local, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp4", local)
	if err != nil {
		return err
	}
	defer func() { s.Store(nil); _ = conn.Close() }()
	_ = conn.SetReadBuffer(receiveBuffer)
	s.Store(conn)
	log.Info("Receiving messages", "address", conn.LocalAddr().String())
	for buffer := make([]byte, longestMessage); ; {
		size, _, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return err
		}
		record(buffer[:size])
	}
}

// lost returns the number of datagrams that the kernel dropped because the buffer was full.
func (s *socket) lost() float64 {
	files, _ := procfs.NewDefaultFS()
	ports, _ := files.NetUDP()
	conn := s.Load()
	for _, port := range ports {
		if conn != nil && fmt.Sprintf("%s:%d", port.LocalAddr, port.LocalPort) == conn.LocalAddr().String() {
			return float64(*port.Drops)
		}
	}
	return 0
}
